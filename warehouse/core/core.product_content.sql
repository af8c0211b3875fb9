-- name: core.product_content
-- grain: One language of one product (option_id '') or option.
-- description: Texts for travellers, as received (capability content); shapes of the JSON differ between services.
-- key: connection_id, product_id, option_id, language
-- landing: merged by key; deletions are marked, never made
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists core.product_content (
  connection_id     text not null,
  product_id        text not null,
  option_id         text not null,
  language          text not null,
  title             text,
  short_description text,
  description       text,
  features          text,
  faqs              text,
  media             text,
  locations         text,
  category_labels   text,
  first_seen_at_utc timestamptz,
  last_seen_at_utc  timestamptz,
  is_deleted        boolean,
  deleted_at_utc    timestamptz,
  row_hash          bigint,
  stale_columns     text
);
comment on table core.product_content is 'Texts for travellers, as received (capability content); shapes of the JSON differ between services. One row: one language of one product (option_id '''') or option.';
comment on column core.product_content.connection_id is 'The connection it was seen through.';
comment on column core.product_content.product_id is 'OCTO product id.';
comment on column core.product_content.option_id is 'OCTO option id; '''' = of the product.';
comment on column core.product_content.language is 'The language the service answered in.';
comment on column core.product_content.title is 'Name.';
comment on column core.product_content.short_description is 'One or two sentences.';
comment on column core.product_content.description is 'The long text.';
comment on column core.product_content.features is 'JSON array of inclusions, highlights and the like.';
comment on column core.product_content.faqs is 'JSON array of questions and answers.';
comment on column core.product_content.media is 'JSON array of pictures and films.';
comment on column core.product_content.locations is 'JSON array of places.';
comment on column core.product_content.category_labels is 'JSON array of labels.';
comment on column core.product_content.first_seen_at_utc is 'When this row was first stored.';
comment on column core.product_content.last_seen_at_utc is 'When this row last changed; ops.coverage says when it was last verified.';
comment on column core.product_content.is_deleted is 'Deleted at the service; two requests proved it.';
comment on column core.product_content.deleted_at_utc is 'When the deletion was proven.';
comment on column core.product_content.row_hash is 'Hash of the row''s content as received.';
comment on column core.product_content.stale_columns is 'What is older than the row''s last verification, because later answers had no value for it: columns or detail tables, comma-separated; * = all of it. Null: nothing.';
