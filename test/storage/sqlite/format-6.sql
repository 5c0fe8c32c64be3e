-- What a server of format 6 left: what a server of format 5 has, with the table of removals.
pragma page_size = 16384;
pragma auto_vacuum = incremental;
CREATE TABLE meta (
      one integer primary key check (one = 1),
      age real not null, wall real not null, closed integer not null,
      next_block integer not null, next_user integer not null, secret blob not null
    , placed_from integer not null default 0, next_rule integer not null default 1, next_token integer not null default 1, audit_number integer not null default 0, audit_hash blob, audit_start integer not null default 0, audit_start_hash blob) strict;
INSERT INTO meta VALUES(1,77.0,1700000000000.0,0,4,10,X'defa7377c1a647e9048abbcb8ec4ffc1523b8157547cbf5920006c7172b3020c',1,1,1,0,NULL,0,NULL);
CREATE TABLE tenant (name text primary key, quota text not null default '{}') strict;
INSERT INTO tenant VALUES('default','{}');
INSERT INTO tenant VALUES('acme','{}');
CREATE TABLE user (
      id integer primary key, tenant text not null, name text not null, role text not null,
      bcrypt text, scram_salt blob, scram_iterations integer, scram_stored_key blob, scram_server_key blob,
      loopback_only integer not null
    , created real not null default 0) strict;
INSERT INTO user VALUES(1,'default','ada','admin','$2b$10$abc',X'1f262d343b424950575e656c737a8188',4096,X'3e454c535a61686f767d848b9299a0a7aeb5bcc3cad1d8dfe6edf4fb02091017',X'5d646b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0f7fe050c131a21282f36',0,1690000000000.0);
INSERT INTO user VALUES(6,'acme','bob','consumer',NULL,NULL,NULL,NULL,NULL,1,1690000000000.0);
CREATE TABLE channel (
      id integer primary key, user integer not null, url text not null,
      defined integer not null, configured integer not null, durable integer not null,
      window integer not null, window_bytes integer not null, max_bytes integer not null,
      max_age_ms real not null, expire_ms real not null, overflow text not null, origin integer not null,
      last_used real not null
    ) strict;
INSERT INTO channel VALUES(1,1,'',1,0,1,65536,8388608,67108864,604800000.0,604800000.0,'drop-oldest',2251799813685249,0.0);
INSERT INTO channel VALUES(2,6,'',1,0,1,65536,8388608,67108864,604800000.0,604800000.0,'drop-oldest',2251799813685250,0.0);
CREATE TABLE numbers (
      channel integer primary key, floor integer not null, next integer not null, reserved integer not null,
      accepted integer not null, committed integer not null,
      overflow integer not null, superseded integer not null, expired integer not null, damaged integer not null,
      purged integer not null, stopped integer not null, full integer not null, gaps integer not null
    , checksum integer) strict;
INSERT INTO numbers VALUES(1,2251799813685249,2251799813685253,2251799814733829,8,1,3,0,0,0,0,0,0,1,1565110486);
INSERT INTO numbers VALUES(2,0,2251799813685250,2251799813685250,0,0,0,0,0,0,0,0,0,0,2606525590);
CREATE TABLE instance (
      id integer primary key, user integer not null, metric text not null, args blob not null
    ) strict;
INSERT INTO instance VALUES(40,1,'host.load.one',X'7c838a91989fa6adb4bbc2c9');
CREATE TABLE binding (
      channel integer not null, metric integer not null, mode text not null, primary key (channel, metric)
    ) strict, without rowid;
INSERT INTO binding VALUES(1,40,'buffer');
CREATE TABLE stop (
      channel integer not null, metric integer not null, through integer not null, primary key (channel, metric)
    ) strict, without rowid;
INSERT INTO stop VALUES(1,40,2251799813685249);
CREATE TABLE result (
      id integer primary key, channel integer not null, user integer not null, control text not null,
      transaction_id integer not null
    ) strict;
INSERT INTO result VALUES(50,1,1,'user.list',0);
CREATE TABLE block (
      id integer primary key, channel integer, lane integer, first integer, count integer,
      stamp real, "from" real, "to" real, metric integer, checksum integer, data blob
    ) strict;
INSERT INTO block VALUES(1,1,0,2251799813685249,3,12.5,1700000000000001.0,1700000000000002.0,7,7139531280764088,X'1f262d343b424950575e656c737a81888f969da4abb2b9c0c7ced5dce3eaf1f8ff060d141b222930373e454c535a61686f767d848b9299a0a7aeb5bcc3cad1d8dfe6edf4fb020910171e252c333a41484f565d646b727980878e959ca3aab1b8');
INSERT INTO block VALUES(2,1,40,0,2,5.5,1700000000000001.0,1700000000000002.0,7,4507539164863550,X'3e454c535a61686f767d848b9299a0a7aeb5bcc3cad1d8dfe6edf4fb020910171e252c333a41484f565d646b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0f7');
CREATE TABLE settled (block integer primary key, bits blob not null, checksum integer) strict;
INSERT INTO settled VALUES(1,X'02',115633867);
CREATE TABLE damaged (id integer primary key, reason text not null) strict;
CREATE TABLE gap (
      id integer primary key, channel integer, lane integer, transaction_id integer,
      metric integer, count integer, "from" real, "to" real, reason integer
    , checksum integer) strict;
INSERT INTO gap VALUES(3,1,0,2251799813685252,7,3,1700000000000001.0,1700000000000002.0,1,2571041803);
CREATE TABLE rule (
      number integer primary key, role text not null, effect text not null, command text not null,
      object text not null, "where" text not null, checksum integer not null
    ) strict;
CREATE TABLE token (
      id integer primary key, user integer not null, name text not null, hash blob not null, scope text not null,
      made real not null, expires real, checksum integer not null
    ) strict;
CREATE TABLE dial (
      channel integer primary key, scram_salt blob, scram_iterations integer, scram_stored_key blob,
      scram_server_key blob
    ) strict;
INSERT INTO dial VALUES(1,X'1f262d343b424950575e656c737a8188',4096,X'3e454c535a61686f767d848b9299a0a7aeb5bcc3cad1d8dfe6edf4fb02091017',X'5d646b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0f7fe050c131a21282f36');
INSERT INTO dial VALUES(2,NULL,NULL,NULL,NULL);
CREATE TABLE place (
      channel integer not null, metric integer not null, reached integer not null, primary key (channel, metric)
    ) strict, without rowid;
INSERT INTO place VALUES(1,40,7);
CREATE TABLE fence (sensor text primary key) strict;
INSERT INTO fence VALUES('host');
CREATE TABLE execution (
      user integer not null, control text not null, key text not null, digest blob not null, at real not null,
      result blob, primary key (user, control, key)
    ) strict;
INSERT INTO execution VALUES(1,'user.list','key',X'7c838a91989fa6adb4bbc2c9d0d7dee5ecf3fa01080f161d242b323940474e55',5.5,X'9ba2a9b0b7bec5cc');
CREATE TABLE audit (
      number integer primary key, time integer not null, action text not null, actor text not null,
      tenant text not null, address text not null, object text not null, args text not null, outcome text not null,
      detail text not null, hash blob not null
    ) strict;
CREATE INDEX block_order on block (channel, lane, first);
CREATE INDEX gap_order on gap (channel, lane, transaction_id);
CREATE INDEX token_user on token (user);
CREATE INDEX execution_at on execution (at);
pragma application_id = 0x43696e6e;
CREATE TABLE removal (
      subject text not null, id integer not null, primary key (subject, id)
    ) strict, without rowid;
pragma user_version = 6;
