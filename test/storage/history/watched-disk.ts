/** The disk of a history whose every operation is seen before it is done, and may fail instead. */
import type { Database, Statement } from 'better-sqlite3'
import { type HistoryDisk, realDisk } from '../../../storage/history/database.ts'

/** `operation` is called before each; what it throws, the operation throws. */
export function watchedDisk(operation: (what: string) => void): HistoryDisk {
  return {
    open(path, options) {
      const database = realDisk.open(path, options)
      return options?.readonly === true ? database : watched(database, operation)
    },
    sync(path) {
      operation('sync')
      realDisk.sync(path)
    },
    syncDirectory(path) {
      operation('sync directory')
      realDisk.syncDirectory(path)
    },
    remove(path) {
      operation('remove')
      realDisk.remove(path)
    },
  }
}

function watched(database: Database, operation: (what: string) => void): Database {
  return over(database, {
    prepare: (sql: string) => {
      const statement = database.prepare(sql)
      return /^(insert|update|delete)/.test(sql) ? watchedStatement(statement, sql, operation) : statement
    },
    exec: (sql: string) => {
      operation(sql)
      return database.exec(sql)
    },
    transaction: (work: () => void) => {
      const transaction = database.transaction(() => {
        work()
        operation('commit')
      })
      return {
        immediate() {
          operation('begin')
          transaction.immediate()
          committed(operation)
        },
      }
    },
  })
}

/** What is committed is not undone by an error: kills strike here too, and failures do not. */
function committed(operation: (what: string) => void): void {
  try {
    operation('committed')
  } catch {}
}

function watchedStatement(statement: Statement, sql: string, operation: (what: string) => void): Statement {
  return over(statement, {
    run: (...values: unknown[]) => {
      operation(sql)
      return statement.run(...values)
    },
  })
}

/** A disk that cannot read the bytes of pages while `isFailing`. */
export function unreadableDisk(isFailing: () => boolean): HistoryDisk {
  const guarded = (statement: Statement): Statement =>
    over(statement, {
      get: (...values: unknown[]) => {
        if (isFailing()) throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_READ' })
        return statement.get(...values)
      },
    })
  return {
    ...realDisk,
    open(path, options) {
      const database = realDisk.open(path, options)
      return over(database, {
        prepare: (sql: string) => {
          const statement = database.prepare(sql)
          return sql.startsWith('select checksum, data from page') ? guarded(statement) : statement
        },
      })
    },
  }
}

function over<Target extends object>(target: Target, own: Readonly<Record<string, unknown>>): Target {
  return new Proxy(target, {
    get(_, key) {
      if (typeof key === 'string' && key in own) return own[key]
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
