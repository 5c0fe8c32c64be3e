/**
 * The judge of the databases: at the end, when all nodes have ended, each is at the end of the log, and they are equal row by row,
 * but for the columns that are a node's own. The audit log is verified in each with the command for that.
 */
import { execFileSync } from 'node:child_process'
import { dirname } from 'node:path'
import type { Database } from 'better-sqlite3'
import { ReplicatedStore } from '../../../storage/replicated/store.ts'
import { openSqlite } from '../../../storage/sqlite/driver.ts'
import type { Totals } from '../../rig/rig.ts'
import { SERVER_PROGRAM } from '../../support/program.ts'
import type { ChaosNode, Nodes } from './nodes.ts'

const BOUNDS_MS = 60_000
const PATIENCE_MS = 60_000
/** Columns of meta that say something of the node and not of the cluster. */
const OWN = ['directory', 'progress', 'closed', 'restored']

/** Throws at the first difference. */
export async function compareDatabases(nodes: Nodes): Promise<Totals> {
  const [first, ...others] = nodes.all as readonly [ChaosNode, ...ChaosNode[]]
  for (const node of nodes.all) await catchUp(node, nodes)
  let rows = 0
  for (const { name, server } of others) {
    const found = compareRows(first.server.database, server.database)
    if (found.difference !== undefined) throw new Error(`${first.name} and ${name} differ: ${found.difference}`)
    rows = found.rows
  }
  const chains = nodes.all.map(({ server }) => verifiedAudit(server.database))
  if (new Set(chains.map(({ hash }) => hash)).size > 1) {
    throw new Error(`the audit logs end differently: ${JSON.stringify(chains)}`)
  }
  return { 'equal rows': rows, 'audit records': chains[0]?.records ?? 0 }
}

/** The database of a node that has ended gets what the log has and it has not. */
async function catchUp({ name, server }: ChaosNode, nodes: Nodes): Promise<void> {
  const log = nodes.logOptions(name)
  const store = new ReplicatedStore({ store: { directory: dirname(server.database) }, log, wallMs: Date.now })
  try {
    const { last } = await store.end(BOUNDS_MS)
    const stopping = new AbortController()
    const onPlace = ({ sequence }: { readonly sequence: number }): void => {
      if (sequence >= last) stopping.abort()
    }
    const late = setTimeout(() => stopping.abort(), PATIENCE_MS)
    await store.follow({ onPlace, onObstacle() {} }, stopping.signal)
    clearTimeout(late)
    const { sequence } = await store.place()
    if (sequence !== last) throw new Error(`${name} is at ${sequence}, and the log ends at ${last}`)
  } finally {
    await store.disconnect()
  }
}

/** Compares two databases table by table, in the order of their columns. Rows: of all tables of the first. */
export function compareRows(one: string, other: string): { readonly rows: number; readonly difference?: string } {
  const databases = [one, other].map((path) => openSqlite(path, { readonly: true, fileMustExist: true }))
  const [left, right] = databases as [Database, Database]
  try {
    const [tables, otherTables] = [tablesOf(left), tablesOf(right)]
    if (tables.join() !== otherTables.join()) return { rows: 0, difference: `tables ${tables} and ${otherTables}` }
    let rows = 0
    for (const table of tables) {
      const query = queryOf(left, table)
      const [mine, theirs] = [rowsOf(left, query), rowsOf(right, query)]
      for (;;) {
        const [a, b] = [mine.next(), theirs.next()]
        if (a.done && b.done) break
        const [shown, otherShown] = [show(a.value), show(b.value)]
        if (shown !== otherShown) {
          // Else the databases cannot be closed.
          for (const reading of [mine, theirs]) reading.return?.()
          return { rows, difference: `table ${table}: ${shown} and ${otherShown}` }
        }
        rows++
      }
    }
    return { rows }
  } finally {
    for (const database of databases) database.close()
  }
}

function tablesOf(database: Database): string[] {
  const names = "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by name"
  return database.prepare<unknown[], string>(names).pluck().all()
}

function queryOf(database: Database, table: string): string {
  const columns = (database.pragma(`table_info(${table})`) as { name: string }[])
    .map(({ name }) => name)
    .filter((name) => table !== 'meta' || !OWN.includes(name))
    .map((name) => `"${name}"`)
  return `select ${columns.join()} from "${table}" order by ${columns.join()}`
}

function rowsOf(database: Database, query: string): Iterator<unknown[]> {
  return database.prepare<unknown[], unknown[]>(query).raw().iterate()
}

function show(row: unknown[] | undefined): string {
  if (row === undefined) return 'nothing'
  return row.map((value) => (Buffer.isBuffer(value) ? value.toString('hex') : String(value))).join(', ')
}

interface Finding {
  readonly records: number
  readonly hash: string
}

/** Throws with what the command says if the audit log is not whole. */
function verifiedAudit(database: string): Finding {
  const args = [SERVER_PROGRAM, 'audit', 'verify', '--json', '--database', database]
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as Finding
}
