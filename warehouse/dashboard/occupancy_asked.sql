-- name: occupancy_asked
-- description: The first and the last day whose departures were ever asked for, through any connection.
select min(window_start) as first_day, max(window_end) as last_day from ops.coverage where resource = 'availability'
