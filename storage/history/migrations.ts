/**
 * The tables of the history as numbered steps, as those of the database (sqlite/migrations.ts): a released step is never edited.
 * docs/storage.md describes the result. Files of days and months have one table, which belongs to the same format.
 */
import type { Database } from 'better-sqlite3'

/** 'CinH' in the header of the files of the history. */
export const HISTORY_APPLICATION_ID = 0x43696e48

export const HISTORY_MIGRATIONS: readonly ((database: Database) => void)[] = [
  firstTables,
  tenantNumbers,
  families,
  logPlace,
]

/** Brings fresh.db to the format of this version. */
export function migrateHistory(database: Database): void {
  const version = Number(database.pragma('user_version', { simple: true }))
  for (const [index, migration] of HISTORY_MIGRATIONS.entries()) {
    if (index < version) continue
    const step = database.transaction(() => {
      migration(database)
      mark(database, index + 1)
    })
    step.immediate()
  }
}

/** Makes the tables of a new file of a day or a month. */
export function makeFileTables(database: Database): void {
  pages(database)
  mark(database, HISTORY_MIGRATIONS.length)
}

function mark(database: Database, version: number): void {
  database.pragma(`application_id = ${HISTORY_APPLICATION_ID}`)
  database.pragma(`user_version = ${version}`)
}

/**
 * `run` names rows of pages, of which each has its place by `hi`, then `id`. Large columns are the last. Tables that every commit
 * writes have no `not null`, see sqlite/migrations.ts.
 */
function firstTables(database: Database): void {
  database.exec(`
    create table tenant (
      id integer primary key, name text not null unique,
      generation text, channel integer, transaction_id integer, taken_ms integer
    ) strict;
    create table leaving (tenant integer primary key) strict;

    create table name (id integer primary key, tenant integer not null, text text not null, unique (tenant, text)) strict;
    create table term (
      id integer primary key, tenant integer not null, label text not null, text text not null,
      unique (tenant, label, text)
    ) strict;
    create table series (
      id integer primary key, tenant integer not null, name integer not null, hash integer not null,
      kind text not null, last_ms integer not null, native text not null, labels text not null
    ) strict;
    create index series_hash on series (hash);
    create index series_tenant on series (tenant);
    create index series_last on series (tenant, last_ms);
    create table posting (term integer not null, series integer not null, primary key (term, series)) strict, without rowid;

    create table loss (
      id integer primary key, tenant integer, native text, from_ms integer, to_ms integer, count integer, reason text
    ) strict;
    create index loss_to on loss (tenant, to_ms);

    create table columns (
      id integer primary key, tenant integer, from_ms integer, to_ms integer, samples integer, checksum integer, data blob
    ) strict;
    create index columns_tenant on columns (tenant);

    create table file (
      id integer primary key, name text not null unique, kind text not null, period integer not null,
      bytes integer not null, stale_ms integer
    ) strict;
    create table run (
      id integer primary key, tenant integer not null, kind text not null, period integer not null,
      number integer not null, level integer not null, made_ms integer not null, file integer,
      from_ms integer not null, to_ms integer not null, samples integer not null, bytes integer not null
    ) strict;
    create index run_period on run (kind, period, tenant, number);
    create index run_file on run (file);
    create index run_tenant on run (tenant, kind, to_ms);
    create table gone (run integer primary key) strict;
    create table dropped (series integer primary key, tenant integer not null, number integer not null) strict;
  `)
  pages(database)
}

/** How many values the channel has committed, and up to which day samples have gone for good. */
function tenantNumbers(database: Database): void {
  database.exec(`
    alter table tenant add column committed integer;
    alter table tenant add column gone_ms integer;
  `)
}

/** What was said of the metrics of series; each is one family or more. */
function families(database: Database): void {
  database.exec(`
    create table family (
      id integer primary key, tenant integer not null, native text not null, name text not null,
      type text not null, help text not null, unit text not null, unique (tenant, native, name)
    ) strict;
  `)
}

/** Where the history is in the log that the nodes of a cluster share: one row, or none. */
function logPlace(database: Database): void {
  database.exec(`
    create table log (
      id integer primary key check (id = 1), log integer, epoch integer, sequence integer, hash blob
    ) strict;
  `)
}

function pages(database: Database): void {
  database.exec(`
    create table page (
      id integer primary key, run integer, lo integer, hi integer, from_ms integer, to_ms integer,
      samples integer, checksum integer, data blob
    ) strict;
    create index page_place on page (run, hi);
  `)
}
