/**
 * Loaded into a server by `NODE_OPTIONS=--require`, in its main thread and in the storage thread: kills the process at the
 * n-th time that the point named by CHAOS_POINT is reached. The product knows nothing of it: what is watched from outside
 * are the SQL that the storage thread runs, its messages, and what is written to sockets. CommonJS, since a preload has to
 * be there before anything else is loaded.
 */
'use strict'
const { writeFileSync } = require('node:fs')
const { Socket } = require('node:net')
const { isMainThread, MessagePort, Worker } = require('node:worker_threads')

const { CHAOS_POINT: wanted, CHAOS_TIMES: times = '1', CHAOS_FIRED: fired, CHAOS_DELAY_US: delay = '0' } = process.env
/** Commands that the rig sends with these numbers are COMMITs. */
const FIRST_COMMIT_SEQ = 0x40000000
const RESERVED_IDS = 2 ** 21
const OVERFLOW = 1
const SUPERSEDED = 2
const IN_USE = Number.MAX_SAFE_INTEGER

/** How long the storage thread stands still at its point: whoever answers without waiting for it has answered by then. */
const LINGER_MS = 40

let left = Number(times)

function reach(point) {
  if (point !== wanted || --left > 0) return
  if (!isMainThread) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LINGER_MS)
  writeFileSync(fired, point)
  process.kill(process.pid, 'SIGKILL')
}

if (wanted && isMainThread) watchSockets()
if (wanted && !isMainThread) watchStorage()

function watchSockets() {
  const { write } = Socket.prototype
  Socket.prototype.write = function (bytes, ...rest) {
    if (bytes instanceof Uint8Array && bytes.length >= 16) {
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      const [kind, number] = [view.getUint32(4), view.getUint32(8)]
      if (kind === 0xffffffff && number >= FIRST_COMMIT_SEQ) reach('response-not-written')
      if (kind === 0xfffffffb && number === SUPERSEDED) reach('swap-not-told')
    }
    return write.call(this, bytes, ...rest)
  }
}

function watchStorage() {
  const Database = require('better-sqlite3')
  const database = new Database(':memory:')
  const statements = Object.getPrototypeOf(database.prepare('select 1'))
  database.close()
  const checkpoint = wanted === 'checkpoint' ? startKiller() : () => {}
  let inside = begin()

  for (const method of ['run', 'get', 'all', 'iterate']) {
    const original = statements[method]
    statements[method] = function (...args) {
      const sql = this.source
      // Values stand one by one or in an array.
      const values = args.flat()
      before(this, sql, values)
      const result = original.apply(this, args)
      after(sql, values)
      return result
    }
  }

  const { postMessage } = MessagePort.prototype
  MessagePort.prototype.postMessage = function (message, ...rest) {
    if (message?.type === 'durable') {
      if (inside.blocks.size > 0) reach('committed-not-told')
      if (inside.swapped) reach('swap-stored')
    }
    return postMessage.call(this, message, ...rest)
  }

  function before(statement, sql, args) {
    if (/^begin/i.test(sql)) inside = begin()
    else if (/^commit$/i.test(sql)) beforeCommit()
    else if (sql.includes('into block values')) reach('before-insert')
    else if (sql.includes('into numbers') && args[3] - args[2] === RESERVED_IDS) reach('range-not-reserved')
    else if (sql.includes('into channel (')) seeChannel(statement, rowOf(sql, args))
    else if (sql.includes('from block') && sql.includes('not in')) reach('recovery-reading')
    else if (/wal_checkpoint\((passive|truncate)\)/.test(sql)) checkpoint()
  }

  function seeChannel(statement, row) {
    const known = statement.database.prepare('select count(*) as count from channel where id = ?').get(row.id).count > 0
    if (known && row.last_used === IN_USE) inside.swapped = true
    if (!known && row.defined === 1) inside.defined = true
  }

  function beforeCommit() {
    if (inside.blocks.size > 0) reach('inserted-not-committed')
    if (inside.copied) reach('copies-not-committed')
    if (inside.swapped) reach('swap-not-stored')
    if (inside.defined) reach('channel-defined')
    if (inside.result > 0) reach('result-not-stored')
    if (inside.asked) reach('approval-not-asked')
    if (inside.decided) reach('approval-not-stored')
    if (inside.meta) reach('recovery-storing')
  }

  function after(sql, args) {
    if (/^commit$/i.test(sql)) {
      if (inside.reserved) reach('range-reserved')
      if (inside.result === 0) reach('execute-announced')
      if (inside.asked) reach('approval-asked')
      if (inside.decided) reach('approval-stored')
      if (inside.meta) reach('recovery-stored')
    } else if (sql.includes('into block values')) {
      inside.blocks.add(args[1])
      if (inside.bound.has(args[1])) {
        inside.copied = true
        reach('half-the-copies')
      }
    } else if (sql.includes('into binding (')) inside.bound.add(rowOf(sql, args).channel)
    else if (sql.includes('into settled')) reach('half-a-commit-batch')
    else if (sql.includes('into gap') && args[8] === OVERFLOW) reach('overflow-gap')
    else if (sql.includes('into result (')) inside.result = rowOf(sql, args).transaction_id
    else if (sql.includes('into approval (')) inside.asked = true
    else if (sql.startsWith('delete from approval')) inside.decided = true
    else if (sql.includes('into numbers')) inside.reserved ||= args[3] - args[2] === RESERVED_IDS
    else if (sql.startsWith('delete from channel')) reach('channel-half-deleted')
    else if (sql.startsWith('update block set lane')) reach('half-released')
    else if (sql.startsWith('update meta set age')) inside.meta = true
  }
}

/** The row of an insert that names its columns. */
function rowOf(sql, values) {
  const [, columns = ''] = /\(([^)]*)\) values/.exec(sql) ?? []
  const names = columns.replaceAll('"', '').split(',')
  return Object.fromEntries(names.map((name, at) => [name, values[at]]))
}

/** What the transaction under way has done so far. */
function begin() {
  const none = { copied: false, swapped: false, defined: false, reserved: false, meta: false, asked: false, decided: false }
  return { blocks: new Set(), bound: new Set(), ...none }
}

/** A checkpoint is one synchronous call: only another thread can kill in the middle of it. */
function startKiller() {
  const flag = new Int32Array(new SharedArrayBuffer(4))
  const code = `
    const { workerData: { flag, delay, fired } } = require('node:worker_threads')
    Atomics.wait(flag, 0, 0)
    const end = process.hrtime.bigint() + BigInt(delay) * 1000n
    while (process.hrtime.bigint() < end) {}
    require('node:fs').writeFileSync(fired, 'checkpoint')
    process.kill(process.pid, 'SIGKILL')`
  new Worker(code, { eval: true, workerData: { flag, delay, fired }, env: {} }).unref()
  return () => {
    Atomics.store(flag, 0, 1)
    Atomics.notify(flag, 0)
  }
}
