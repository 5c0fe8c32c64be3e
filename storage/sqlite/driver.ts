/**
 * better-sqlite3, in the version for this Node. Version 13 needs a newer Node-API than Node 20 has; version 12 is compiled for one
 * Node, and from Node 24.19 on it ends the process when a statement is collected. Both have the same interface.
 */
import { createRequire } from 'node:module'
import type { Database, Options } from 'better-sqlite3'
import { StorageError } from '../store.ts'

type Driver = new (path: string, options?: Options) => Database

const FIRST_WITH_13 = 22
const require = createRequire(import.meta.url)

/**
 * Nothing in the schema of a database, which may come from elsewhere, calls functions with side effects. Throws what
 * better-sqlite3 throws, and StorageError IO if that cannot be loaded.
 */
export function openSqlite(path: string, options: Options = {}): Database {
  const database = new (driverFor(Number.parseInt(process.versions.node, 10), require))(path, options)
  database.pragma('trusted_schema = off')
  return database
}

/** `node`: its major version. `load` gives a module by its name. Throws StorageError IO with what to do. */
export function driverFor(node: number, load: (name: string) => Driver): Driver {
  const name = node >= FIRST_WITH_13 ? 'better-sqlite3-13' : 'better-sqlite3'
  try {
    const driver = load(name)
    // The native part is loaded with the first database: one that is missing, or for another Node, shows only now.
    new driver(':memory:').close()
    return driver
  } catch (error) {
    const [line = ''] = String(error instanceof Error ? error.message : error).split('\n')
    const why = line.replace(/\.?( Tried)?[:.]*$/, '')
    const advice =
      node >= FIRST_WITH_13
        ? 'Install again, with optional dependencies and by the Node that runs the server'
        : 'On Node 20 it is compiled when it is installed, which needs a C++ compiler, make and Python: install again, or use Node 22 or newer'
    throw new StorageError('IO', `SQLite (${name}) cannot be loaded: ${why}. ${advice}`, error)
  }
}
