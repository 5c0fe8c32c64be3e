-- What a server of format 1 left: a channel with blocks, a bitmap, a GAP and numbers, and one that was never used.
pragma page_size = 16384;
pragma auto_vacuum = incremental;
CREATE TABLE meta (
  one integer primary key check (one = 1),
  age real not null, wall real not null, closed integer not null,
  next_block integer not null, next_user integer not null, secret blob not null
) strict;
CREATE TABLE tenant (name text primary key) strict;
CREATE TABLE user (
  id integer primary key, tenant text not null, name text not null, role text not null,
  bcrypt text, scram_salt blob, scram_iterations integer, scram_stored_key blob, scram_server_key blob,
  loopback_only integer not null
) strict;
CREATE TABLE channel (
  id integer primary key, user integer not null, url text not null,
  defined integer not null, configured integer not null, durable integer not null,
  window integer not null, window_bytes integer not null, max_bytes integer not null,
  max_age_ms real not null, expire_ms real not null, overflow text not null, origin integer not null,
  last_used real not null
) strict;
CREATE TABLE numbers (
  channel integer primary key, floor integer not null, next integer not null, reserved integer not null,
  accepted integer not null, committed integer not null,
  overflow integer not null, superseded integer not null, expired integer not null, damaged integer not null,
  purged integer not null, stopped integer not null, full integer not null, gaps integer not null
) strict;
CREATE TABLE instance (
  id integer primary key, user integer not null, metric text not null, args blob not null
) strict;
CREATE TABLE binding (
  channel integer not null, metric integer not null, mode text not null, primary key (channel, metric)
) strict, without rowid;
CREATE TABLE stop (
  channel integer not null, metric integer not null, through integer not null, primary key (channel, metric)
) strict, without rowid;
CREATE TABLE result (
  id integer primary key, channel integer not null, user integer not null, control text not null,
  transaction_id integer not null
) strict;
CREATE TABLE block (
  id integer primary key, channel integer, lane integer, first integer, count integer,
  stamp real, "from" real, "to" real, metric integer, checksum integer, data blob
) strict;
CREATE INDEX block_order on block (channel, lane, first);
CREATE TABLE settled (block integer primary key, bits blob not null) strict;
CREATE TABLE damaged (id integer primary key, reason text not null) strict;
CREATE TABLE gap (
  id integer primary key, channel integer, lane integer, transaction_id integer,
  metric integer, count integer, "from" real, "to" real, reason integer
) strict;
CREATE INDEX gap_order on gap (channel, lane, transaction_id);
insert into meta values (1, 77, 1700000000000, 0, 4, 1, x'd56f23238328fa91e674aa572e4982dd7e4abff3f25584cfef1431751198b157');
insert into channel values (1, 1, '', 1, 0, 1, 65536, 8388608, 67108864, 604800000, 604800000, 'drop-oldest', 2251799813685249, 0);
insert into channel values (2, 1, '', 1, 0, 1, 65536, 8388608, 67108864, 604800000, 604800000, 'drop-oldest', 2251799813685250, 0);
insert into numbers values (1, 2251799813685249, 2251799813685253, 2251799814733829, 8, 1, 3, 0, 0, 0, 0, 0, 0, 1);
insert into block values (1, 1, 0, 2251799813685249, 3, 12.5, 1700000000000001, 1700000000000002, 7, 2849655992, x'1f262d343b424950575e656c737a81888f969da4abb2b9c0c7ced5dce3eaf1f8ff060d141b222930373e454c535a61686f767d848b9299a0a7aeb5bcc3cad1d8dfe6edf4fb020910171e252c333a41484f565d646b727980878e959ca3aab1b8');
insert into block values (2, 1, 40, 0, 2, 5.5, 1700000000000001, 1700000000000002, 7, 1052482622, x'3e454c535a61686f767d848b9299a0a7aeb5bcc3cad1d8dfe6edf4fb020910171e252c333a41484f565d646b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0f7');
insert into settled values (1, x'02');
insert into gap values (3, 1, 0, 2251799813685252, 7, 3, 1700000000000001, 1700000000000002, 1);
pragma application_id = 0x43696e6e;
pragma user_version = 1;
