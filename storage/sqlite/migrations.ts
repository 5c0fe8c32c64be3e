/**
 * The tables as numbered steps: step n upgrades format n - 1 to format n (`PRAGMA user_version`).
 * A released step is never edited; a change is a new step. docs/storage.md describes the result.
 */
import { randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Database } from 'better-sqlite3'
import { RowSum } from './damage/checksum.ts'

/** 'Cinn' in the header of the database file, which identifies its program. */
export const APPLICATION_ID = 0x43696e6e

export type Migration = (database: Database) => void

export const MIGRATIONS: readonly Migration[] = [
  firstTables,
  checksums,
  rights,
  outboundVerifiers,
  userCreated,
  marks,
  bindingOrder,
  generations,
  names,
  bearers,
  upstreams,
  qmfAgent,
  logPlace,
  upstreamBindings,
  boards,
  alerts,
  notifiers,
  missingData,
  ruleFilesAndApprovals,
  notifiersOfUsers,
  tokensOfRuleFiles,
  alertsOfNotifications,
]

/** Each step is one transaction together with its number, so that a crash between two steps leaves a valid format. */
export function migrate(database: Database, migrations: readonly Migration[] = MIGRATIONS): void {
  const version = Number(database.pragma('user_version', { simple: true }))
  for (const [index, migration] of migrations.entries()) {
    if (index < version) continue
    const step = database.transaction(() => {
      migration(database)
      database.pragma(`application_id = ${APPLICATION_ID}`)
      database.pragma(`user_version = ${index + 1}`)
    })
    step.immediate()
  }
}

/**
 * Ids and counts are integers below 2^53; times and durations may have fractions. `data` is the last column, so that the others
 * are read without it. The tables that every batch writes have no `not null`: with it and an index each `insert or replace`
 * opens a statement journal (10,000 rows took 72 ms instead of 21).
 */
function firstTables(database: Database): void {
  database.exec(`
    create table meta (
      one integer primary key check (one = 1),
      age real not null, wall real not null, closed integer not null,
      next_block integer not null, next_user integer not null, secret blob not null
    ) strict;

    create table tenant (name text primary key) strict;
    create table user (
      id integer primary key, tenant text not null, name text not null, role text not null,
      bcrypt text, scram_salt blob, scram_iterations integer, scram_stored_key blob, scram_server_key blob,
      loopback_only integer not null
    ) strict;

    create table channel (
      id integer primary key, user integer not null, url text not null,
      defined integer not null, configured integer not null, durable integer not null,
      window integer not null, window_bytes integer not null, max_bytes integer not null,
      max_age_ms real not null, expire_ms real not null, overflow text not null, origin integer not null,
      last_used real not null
    ) strict;
    create table numbers (
      channel integer primary key, floor integer not null, next integer not null, reserved integer not null,
      accepted integer not null, committed integer not null,
      overflow integer not null, superseded integer not null, expired integer not null, damaged integer not null,
      purged integer not null, stopped integer not null, full integer not null, gaps integer not null
    ) strict;
    create table instance (
      id integer primary key, user integer not null, metric text not null, args blob not null
    ) strict;
    create table binding (
      channel integer not null, metric integer not null, mode text not null, primary key (channel, metric)
    ) strict, without rowid;
    create table stop (
      channel integer not null, metric integer not null, through integer not null, primary key (channel, metric)
    ) strict, without rowid;
    create table result (
      id integer primary key, channel integer not null, user integer not null, control text not null,
      transaction_id integer not null
    ) strict;

    create table block (
      id integer primary key, channel integer, lane integer, first integer, count integer,
      stamp real, "from" real, "to" real, metric integer, checksum integer, data blob
    ) strict;
    create index block_order on block (channel, lane, first);
    create table settled (block integer primary key, bits blob not null) strict;
    create table damaged (id integer primary key, reason text not null) strict;
    create table gap (
      id integer primary key, channel integer, lane integer, transaction_id integer,
      metric integer, count integer, "from" real, "to" real, reason integer
    ) strict;
    create index gap_order on gap (channel, lane, transaction_id);
  `)
  database.prepare('insert into meta values (1, 0, 0, 1, 1, 1, ?)').run(randomBytes(32))
}

/**
 * Existing rows are trusted, and each channel gets a row of numbers. Blocks are not touched, which could take long: the upper bits
 * of their checksum were unused, and `placed_from` is the first id that must have them.
 */
function checksums(database: Database): void {
  database.exec(`
    alter table meta add column placed_from integer not null default 0;
    update meta set placed_from = next_block;
    alter table numbers add column checksum integer;
    alter table gap add column checksum integer;
    alter table settled add column checksum integer;
    insert or ignore into numbers select id, 0, origin, origin, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, null from channel;
  `)
  sumRows(database, 'numbers', 'channel')
  sumRows(database, 'gap', 'id')
  const put = database.prepare('update settled set checksum = ? where block = ?')
  const head = new RowSum(1)
  for (const { block, bits } of database
    .prepare<unknown[], { block: number; bits: Buffer }>('select * from settled')
    .all()) {
    const sum = head.of([block])
    put.run(bits.length === 0 ? sum : crc32(bits, sum), block)
  }
}

/** Rules, tokens, the audit log, outbound connections, resume points, fences and idempotency keys. */
function rights(database: Database): void {
  database.exec(`
    alter table meta add column next_rule integer not null default 1;
    alter table meta add column next_token integer not null default 1;
    alter table meta add column audit_number integer not null default 0;
    alter table meta add column audit_hash blob;
    alter table meta add column audit_start integer not null default 0;
    alter table meta add column audit_start_hash blob;
    alter table tenant add column quota text not null default '{}';

    create table rule (
      number integer primary key, role text not null, effect text not null, command text not null,
      object text not null, "where" text not null, checksum integer not null
    ) strict;
    create table token (
      id integer primary key, user integer not null, name text not null, hash blob not null, scope text not null,
      made real not null, expires real, checksum integer not null
    ) strict;
    create index token_user on token (user);
    create table dial (
      channel integer primary key, scram_salt blob, scram_iterations integer, scram_stored_key blob,
      scram_server_key blob, last_success real not null
    ) strict;
    create table place (
      channel integer not null, metric integer not null, reached integer not null, primary key (channel, metric)
    ) strict, without rowid;
    create table fence (sensor text primary key) strict;

    create table execution (
      user integer not null, control text not null, key text not null, digest blob not null, at real not null,
      result blob, primary key (user, control, key)
    ) strict;
    create index execution_at on execution (at);
    create table audit (
      number integer primary key, time integer not null, action text not null, actor text not null,
      tenant text not null, address text not null, object text not null, args text not null, outcome text not null,
      detail text not null, hash blob not null
    ) strict;
  `)
}

/** The time of the last connection was stored with a dial and never read. */
function outboundVerifiers(database: Database): void {
  database.exec('alter table dial drop column last_success')
}

/** When a user was added, in milliseconds since 1970; 0 for those who were there before. */
function userCreated(database: Database): void {
  database.exec('alter table user add column created real not null default 0')
}

/** Marks of rows that are removed for good, and not gone yet. */
function marks(database: Database): void {
  database.exec(`
    create table removal (
      subject text not null, id integer not null, primary key (subject, id)
    ) strict, without rowid;
  `)
}

/** The block id from which on values are younger than a binding; 0 for the bindings that were there before. */
function bindingOrder(database: Database): void {
  database.exec('alter table binding add column since integer not null default 0')
}

/** What tells a database that is restored from one that goes on. It counts as never served before. */
function generations(database: Database): void {
  database.exec(`
    alter table meta add column generation text not null default '';
    alter table meta add column progress integer not null default 0;
    alter table meta add column directory text not null default '';
    alter table meta add column restored integer not null default 0;
  `)
  database.prepare('update meta set generation = ?').run(randomBytes(8).toString('hex'))
}

/**
 * Names of channels, and those of channels that their owners have lost. These come back in the order of their `rowid`. Which
 * channels were defined with settings is not known, so all of them count as configured: none becomes an orphan.
 */
function names(database: Database): void {
  database.exec(`
    alter table channel add column name text not null default '';
    alter table channel add column paused integer not null default 0;
    update channel set configured = 1 where defined = 1;
    create table lost_name (
      user integer not null, name text not null, reason text not null, primary key (user, name)
    ) strict;
  `)
}

/** What a channel that delivers by HTTP shows to its destination. */
function bearers(database: Database): void {
  database.exec('alter table dial add column bearer blob')
}

/** How far the channels of other servers were emptied. */
function upstreams(database: Database): void {
  database.exec(`
    create table upstream (
      name text primary key, generation text not null, channel integer not null, reached integer not null
    ) strict, without rowid;
  `)
}

/** Who this server is as an agent of QMF, which was a file of the data directory: one row at most. */
function qmfAgent(database: Database): void {
  database.exec(`
    create table qmf_agent (
      one integer primary key check (one = 1), system_id text not null, boot integer not null, banks text not null
    ) strict;
  `)
}

/** The last record of the log of a cluster that this database has; no row if it has none. */
function logPlace(database: Database): void {
  database.exec(`
    create table log (
      one integer primary key check (one = 1),
      log integer not null, epoch integer not null, sequence integer not null, hash blob not null
    ) strict;
  `)
}

/** Which metric ids are bound at other servers, and for what. */
function upstreamBindings(database: Database): void {
  database.exec(`
    create table upstream_binding (
      upstream text not null, generation text not null, channel integer not null, metric integer not null,
      selection text not null, primary key (upstream, metric)
    ) strict, without rowid;
  `)
}

/** Charts that users keep under names. */
function boards(database: Database): void {
  database.exec(`
    alter table meta add column next_board integer not null default 1;
    create table board (
      id integer primary key, user integer not null, name text not null, charts text not null, shared integer not null,
      version integer not null, saved real not null
    ) strict;
    create index board_user on board (user);
  `)
}

/** How far groups of rules were evaluated, and their alerts. */
function alerts(database: Database): void {
  database.exec(`
    create table alert_group (
      name text primary key, reached real not null, sequence integer not null
    ) strict, without rowid;
    create table alert (
      rule text not null, labels text not null, annotations text not null, state text not null, value text not null,
      active real not null, fired real, kept real, resolved real, primary key (rule, labels)
    ) strict, without rowid;
  `)
}

/** What was told of alerts, and of which nobody is told. */
function notifiers(database: Database): void {
  database.exec(`
    create table notify_group (
      notifier text not null, labels text not null, number integer not null, told real not null, due real not null,
      sending text not null, primary key (notifier, labels)
    ) strict, without rowid;
    create table notify_alert (
      notifier text not null, fingerprint text not null, alert text not null, told text not null,
      primary key (notifier, fingerprint)
    ) strict, without rowid;
    create table notification (
      notifier text not null, key text not null, at real not null, labels text not null, firing integer not null,
      resolved integer not null, attempts integer not null, outcome text not null, detail text not null,
      primary key (notifier, key)
    ) strict;
    create table silence (
      tenant text not null, id text not null, kind text not null, matchers text not null, begins real not null,
      ends real not null, author text not null, comment text not null, primary key (tenant, id)
    ) strict, without rowid;
  `)
}

/** Since when an alert goes on although there are no data of it. */
function missingData(database: Database): void {
  database.exec('alter table alert add column missing real')
}

/** Rule files that users have put, and what waits until somebody approves it. */
function ruleFilesAndApprovals(database: Database): void {
  database.exec(`
    create table rule_file (
      tenant text not null, name text not null, user integer not null, author text not null, scope text not null,
      put real not null, rules text not null, checksum integer not null, primary key (tenant, name)
    ) strict, without rowid;
    create table approval (
      id text primary key, user integer not null, role text not null, control text not null, args blob not null,
      channel integer not null, result integer not null, execution text not null, repeats text not null,
      address text not null, destination text not null, scope text not null, token integer not null, asked real not null, age real not null,
      timeout real not null, digest blob not null, preview blob, checksum integer not null
    ) strict;
    create index approval_user on approval (user);
  `)
}

/** Notifiers that users have put. */
function notifiersOfUsers(database: Database): void {
  database.exec(`
    create table notifier (
      tenant text not null, name text not null, user integer not null, author text not null, token integer not null,
      scope text not null, put real not null, settings text not null, sealed blob not null, checksum integer not null,
      primary key (tenant, name)
    ) strict, without rowid;
  `)
}

/** With which token a rule file was put; of those that are there nobody knows that. */
function tokensOfRuleFiles(database: Database): void {
  database.exec(`
    alter table rule_file drop column checksum;
    alter table rule_file add column token integer not null default 0;
    alter table rule_file add column checksum integer not null default 0;
  `)
  sumRows(database, 'rule_file', 'tenant', 'name')
}

/** Which alerts notifications had; of those that are there nobody knows that. */
function alertsOfNotifications(database: Database): void {
  database.exec("alter table notification add column alerts text not null default '[]'")
}

/** The last column is for the checksum of those before it. The first ones are the key. */
function sumRows(database: Database, table: string, ...key: readonly string[]): void {
  const put = database.prepare(
    `update ${table} set checksum = ? where ${key.map((name) => `${name} = ?`).join(' and ')}`,
  )
  for (const row of database.prepare<unknown[], number[]>(`select * from ${table}`).raw().all()) {
    put.run(new RowSum(row.length - 1).of(row), ...row.slice(0, key.length))
  }
}
