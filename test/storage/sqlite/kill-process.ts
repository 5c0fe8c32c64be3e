/** Run as a process of its own, to be killed: writes batch after batch and says which are durable. */
import { writeSync } from 'node:fs'
import { SqliteStore } from '../../../storage/sqlite/store.ts'
import { batchOf } from './kill-batches.ts'

const store = new SqliteStore({ directory: process.argv[2] ?? '' })
const { wall } = await store.open({
  onDurable(number) {
    writeSync(1, `${number}\n`)
    store.write(batchOf(number + 1))
  },
  onFull() {},
  onRoom() {},
  onFailed(error) {
    throw error
  },
})
store.write(batchOf(wall + 1))
