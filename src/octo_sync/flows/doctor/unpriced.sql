-- Per connection: live bookings of no price, though their tickets have one; or all of them, though their products have one.
with
    priced as (
        select
            connection_id, booking_uuid, product_id, option_id,
            greatest(original_minor, retail_minor, net_minor) as amount
        from core.bookings
        where not is_deleted and status not in ('CANCELLED', 'EXPIRED')
    ),
    sold as (
        select connection_id, booking_uuid from core.booking_unit_items
        where not is_deleted and greatest(retail_minor, net_minor) > 0
    ),
    offered as (
        select connection_id, product_id, option_id from core.unit_prices
        where greatest(original_minor, retail_minor, net_minor) > 0
    )
select p.connection_id, count(*) from priced p
where p.amount = 0 and (
    exists (select 1 from sold s where s.connection_id = p.connection_id and s.booking_uuid = p.booking_uuid)
    or exists (
        select 1 from offered o
        where o.connection_id = p.connection_id and o.product_id = p.product_id and o.option_id = p.option_id
    ) and not exists (select 1 from priced paid where paid.connection_id = p.connection_id and paid.amount > 0)
)
group by 1 order by 1
