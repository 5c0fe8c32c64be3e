/** The storage thread of a limit server: SQLite as the server opens it, rows of up to 256 KiB, one transaction per message. */
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { openSqlite } from '../../../storage/sqlite/driver.ts'
import { FrameRun } from '../limit/frame-run.ts'
import { BLOCK_BYTES, type FromStorage, ID_AT, type StorageJob, type ToStorage, valuesPerBlock } from '../limit/job.ts'
import { valueFrame } from '../limit/value-frame.ts'

/** 32 MiB of log, in pages of 16 KiB. */
const PAGES_UNTIL_CHECKPOINT = 2_048

const { directory, halves, frameBytes, values } = workerData as StorageJob
const memory = halves.map((half) => new Uint8Array(half))
const database = openSqlite(join(directory, 'limit.db'))
database.pragma('page_size = 16384')
database.pragma('journal_mode = wal')
database.pragma('synchronous = full')
database.pragma(`wal_autocheckpoint = ${PAGES_UNTIL_CHECKPOINT}`)
database.exec(
  'create table block (id integer primary key, data blob); create table numbers (id integer primary key, committed)',
)
const insert = database.prepare('insert into block (data) values (?)')
const note = database.prepare('replace into numbers values (1, ?)')
const remove = database.prepare('delete from block where id <= ?')
const select = database.prepare<number[], Buffer>('select data from block where id = ?').pluck()
const store = database.transaction((half: number, length: number, committed: number) => {
  for (let at = 0; at < length; at += BLOCK_BYTES)
    insert.run(memory[half]?.subarray(at, Math.min(length, at + BLOCK_BYTES)))
  if (values > 0) remove.run(Math.floor(committed / perBlock))
  note.run(committed)
})

const perBlock = valuesPerBlock(frameBytes)
if (values > 0) database.transaction(fill)()

/** Rows are numbered from 1. */
function fill(): void {
  const frames = new FrameRun(valueFrame(frameBytes), ID_AT)
  for (let id = 1; id <= values; id++) {
    frames.add(id)
    if (id % perBlock === 0 || id === values) insert.run(Buffer.concat(frames.take()))
  }
}

parentPort?.on('message', (message: ToStorage) => {
  if (message.kind === 'read') {
    const data = select.get(message.block + 1)
    const bytes = data && Uint8Array.from(data).buffer
    post({ kind: 'block', data: bytes }, bytes === undefined ? [] : [bytes])
    return
  }
  store.immediate(message.half, message.length, message.committed)
  post({ kind: 'stored' })
})

function post(message: FromStorage, transfer: ArrayBuffer[] = []): void {
  parentPort?.postMessage(message, transfer)
}
