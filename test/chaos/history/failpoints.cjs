/**
 * Loaded into a server by `NODE_OPTIONS=--require`: the thread of its history makes pages of CHAOS_HEAD_SAMPLES samples each, so that
 * there is always something to merge, and the process is killed at the n-th time that the point named by CHAOS_POINT is reached.
 * The product knows nothing of it: what is watched from outside is the SQL that the thread runs.
 */
'use strict'
const { writeFileSync } = require('node:fs')
const { basename } = require('node:path')
const threads = require('node:worker_threads')

const {
  CHAOS_POINT: wanted,
  CHAOS_TIMES: times = '1',
  CHAOS_FIRED: fired,
  CHAOS_HEAD_SAMPLES: headSamples,
} = process.env

let left = Number(times)

function reach(point) {
  if (point !== wanted || --left > 0) return
  writeFileSync(fired, point)
  process.kill(process.pid, 'SIGKILL')
}

const isHistory = basename(threads.workerData?.directory ?? '') === 'history'
if (isHistory) {
  threads.workerData.headSamples = Number(headSamples)
  watch()
}

function watch() {
  const Database = require('better-sqlite3')
  const database = new Database(':memory:')
  const statements = Object.getPrototypeOf(database.prepare('select 1'))
  database.close()
  const { run } = statements
  /** What the transaction under way has written. */
  let written = new Set()

  statements.run = function (...args) {
    const { source } = this
    const isCommit = /^commit$/i.test(source)
    if (/^begin/i.test(source)) written = new Set()
    if (isCommit) for (const what of written) reach(`${what}-not-committed`)
    const result = run.apply(this, args)
    if (isCommit) for (const what of written) reach(`${what}-committed`)
    const what = whatOf(source, this.database)
    if (what === 'page-of-a-file') reach(what)
    else if (what !== undefined) written.add(what)
    return result
  }
}

function whatOf(sql, { name }) {
  if (sql.includes('into columns values')) return 'columns'
  if (sql.includes('into run values')) return 'run'
  if (sql.includes('into file values')) return 'file'
  if (sql.startsWith('delete from page')) return 'removal'
  if (sql.includes('into page values')) return basename(name) === 'fresh.db' ? 'pages' : 'page-of-a-file'
  return undefined
}
