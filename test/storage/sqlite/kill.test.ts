import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { SqliteStore } from '../../../storage/sqlite/store.ts'
import { BLOCK_WIDTH, type Recovered, type Store } from '../../../storage/store.ts'
import { EventLog } from '../../contracts/store-batch.ts'
import { compiled } from '../../support/compiled.ts'
import { times } from '../../support/long.ts'
import { MemoryStore } from '../../support/memory-store/store.ts'
import { batchOf } from './kill-batches.ts'

const KILLS = times({ short: 3, long: 10 })
const PROGRAM = compiled('test/storage/sqlite/kill-process.ts')

/** Lets a process write until it has said `lines` times that a batch is durable, kills it, returns the last it said. */
async function writeAndKill(directory: string, lines: number): Promise<number> {
  const child = spawn(process.execPath, [PROGRAM, directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const gone = once(child, 'exit')
  let last = 0
  let left = lines
  for await (const line of createInterface({ input: child.stdout })) {
    last = Number(line)
    if (--left === 0) child.kill('SIGKILL')
  }
  expect(await gone).toEqual([null, 'SIGKILL'])
  return last
}

async function everything(store: Store, recovered: Recovered): Promise<unknown> {
  const ids = [...recovered.blocks].filter((_, index) => index % BLOCK_WIDTH === 0)
  const found = await store.read(ids)
  const bytes = found.map(({ id, bytes }) => `${id} ${bytes && Buffer.from(bytes).toString('hex')}`)
  const settled = [...recovered.settled].map(([id, bits]) => `${id} ${Buffer.from(bits).toString('hex')}`)
  const audit = await store.audit(0, Number.POSITIVE_INFINITY)
  return { ...recovered, secret: undefined, generation: undefined, settled: settled.sort(), bytes, audit }
}

test('after kill -9 every batch that was said to be durable is there, whole', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'kill-'))
  let reference = new MemoryStore()
  let written = 0
  for (let round = 0; round < KILLS; round++) {
    const said = await writeAndKill(directory, 1 + ((round * 17) % 60))
    const store = new SqliteStore({ directory })
    const recovered = await store.open(new EventLog())
    expect(recovered.restored).toBe(false)
    const there = recovered.wall
    expect(there).toBeGreaterThanOrEqual(said)
    const events = new EventLog()
    await reference.open(events)
    for (; written < there; written++) {
      reference.write(batchOf(written + 1))
      await events.durable(written + 1)
    }
    reference = reference.crash()
    const expected = await reference.open(events)
    expect(await everything(store, recovered)).toEqual(await everything(reference, expected))
    await store.close()
  }
  rmSync(directory, { recursive: true })
})
