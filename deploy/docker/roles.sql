-- Run once, by the postgres container of docker-compose.yml, when its volume is empty.
-- Passwords are read from the mounted secrets: no file of this folder has one.

\set octo `cat /run/secrets/octo`
\set bi `cat /run/secrets/bi`
\set metabase `cat /run/secrets/metabase`

-- The warehouse: octo-sync makes and owns what is in it, bi reads the marts.
create database analytics encoding 'UTF8' template template0;
revoke all on database analytics from public;
create role octo login password :'octo';
create role bi login password :'bi';
alter role bi set enable_mergejoin = off; -- all departures in 2 s instead of 40
grant connect, create on database analytics to octo;
grant connect on database analytics to bi;

-- What Metabase keeps for itself.
create role metabase login password :'metabase';
create database metabase owner metabase encoding 'UTF8' template template0;
revoke all on database metabase from public;

\connect analytics
create schema marts authorization octo;
grant usage on schema marts to bi;
alter default privileges for role octo in schema marts grant select on tables to bi;
