/**
 * better-sqlite3, in the version for this Node. Version 13 needs a newer Node-API than Node 20 has; version 12 is compiled for one
 * Node, and from Node 24.19 on it ends the process when a statement is collected. Both have the same interface.
 */
import { createRequire } from 'node:module'
import type Database from 'better-sqlite3'

const FIRST_WITH_13 = 22

export const Sqlite: typeof Database = load(Number.parseInt(process.versions.node, 10))

/** Throws an Error that says what to do. */
function load(node: number): typeof Database {
  const require = createRequire(import.meta.url)
  const name = node >= FIRST_WITH_13 ? 'better-sqlite3-13' : 'better-sqlite3'
  try {
    const loaded: typeof Database = require(name)
    // What is compiled or built for another machine shows only now.
    new loaded(':memory:').close()
    return loaded
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n', 1)[0] : String(error)
    const advice =
      node >= FIRST_WITH_13
        ? 'Install again with optional dependencies, by the Node that runs the server'
        : 'On Node 20 it is compiled when it is installed: that needs a C++ compiler, make and Python. Install again, or use Node 22 or newer'
    throw new Error(`SQLite (${name}) cannot be loaded: ${why}. ${advice}`, { cause: error })
  }
}
