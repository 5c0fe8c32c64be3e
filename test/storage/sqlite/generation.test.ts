/** Which databases count as restored, and what follows from it. */
import { cpSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openSqlite } from '../../../storage/sqlite/driver.ts'
import { MIGRATIONS, migrate } from '../../../storage/sqlite/migrations.ts'
import type { Recovered } from '../../../storage/store.ts'
import { batch, EventLog, type TestBatch } from '../../contracts/store-batch.ts'
import { threadlessStore } from '../../support/threadless-store.ts'

const NEXT = 2 ** 51
const SKIPPED = 2 ** 36

let root = ''
let directory = ''
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'generation-'))
  directory = join(root, 'data')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const channel = {
  id: 1,
  user: 1,
  name: '',
  url: '',
  defined: true,
  configured: false,
  durable: true,
  window: 1,
  windowBytes: 1,
  maxBytes: 1,
  maxAgeMs: 1,
  expireMs: 1,
  overflow: 'drop-oldest',
  origin: NEXT,
  lastUsed: 0,
  paused: false,
} as const

/** Opens, writes batches, closes. */
async function serve(parts: readonly TestBatch[] = [], options: { at?: string; restored?: boolean } = {}) {
  const { at = directory, restored = false } = options
  const store = threadlessStore({ directory: at, reserveBytes: 0, restored })
  const events = new EventLog()
  const recovered = await store.open(events)
  for (const [index, part] of parts.entries()) {
    store.write(batch(index + 1, part))
    await events.durable(index + 1)
  }
  await store.close()
  return recovered
}

const file = (): string => join(directory, 'generation')
const path = (name: string): string => join(directory, name)
const noted = (): number => Number(readFileSync(file(), 'latin1').trim().split(' ')[1])

/** Consumers were informed. */
const told: TestBatch = { changes: [{ put: 'recovered', row: {} }] }
const reserving: TestBatch = { reserves: true }

function expectRestored({ restored, warnings }: Recovered, reason: string): void {
  expect(restored).toBe(true)
  expect(warnings?.join()).toContain(reason)
}

test('the file grows at each start, with each reservation, and at a clean end', async () => {
  const counts: number[] = []
  const { generation } = await serve([told])
  counts.push(noted())
  await serve([told])
  counts.push(noted())
  await serve([told, reserving])
  counts.push(noted())
  await serve([told, { changes: [{ put: 'closed', row: {} }] }])
  counts.push(noted())
  expect(counts).toEqual([1, 2, 4, 6])
  expect(readFileSync(file(), 'latin1')).toMatch(new RegExp(`^${generation} 6 +\\n$`))
})

describe('goes on', () => {
  test('after any number of starts', async () => {
    const { generation } = await serve([told])
    for (let time = 0; time < 3; time++) expect(await serve([told])).toMatchObject({ generation, restored: false })
  })

  test('in a directory that was renamed, or is reached by a link', async () => {
    const { generation } = await serve([told])
    renameSync(directory, join(root, 'moved'))
    symlinkSync(join(root, 'moved'), directory)
    expect(await serve([told])).toMatchObject({ generation, restored: false })
  })

  test('of the format before, which knew no generation', async () => {
    await serve()
    rmSync(directory, { recursive: true })
    await serve([], { at: join(root, 'other') })
    const other = openSqlite(join(root, 'old.db'))
    migrate(other, MIGRATIONS.slice(0, 7))
    other.close()
    rmSync(join(root, 'other'), { recursive: true })
    cpSync(join(root, 'old.db'), join(root, 'other', 'cinnabar.db'))
    expect(await serve([told], { at: join(root, 'other') })).toMatchObject({ restored: false })
  })

  test('of a format that stored its directory without the file, unless that is a copy', async () => {
    const { generation } = await serve([told])
    const database = openSqlite(path('cinnabar.db'))
    const stored = String(database.prepare('select directory from meta').pluck().get())
    database.prepare('update meta set directory = ?').run(stored.split(' ').slice(0, 2).join(' '))
    database.close()
    cpSync(directory, join(root, 'copied'), { recursive: true })
    expect(await serve([told])).toMatchObject({ generation, restored: false })
    expect(await serve([told], { at: join(root, 'copied') })).toMatchObject({ restored: true })
  })

  test('though the last write to the file was lost', async () => {
    await serve([told])
    const before = readFileSync(file())
    await serve([told, reserving])
    writeFileSync(file(), before)
    expect((await serve()).restored).toBe(false)
  })
})

describe('counts as restored', () => {
  let generation = ''
  beforeEach(async () => {
    ;({ generation } = await serve([{ ...told, changes: [...(told.changes ?? []), { put: 'channel', row: channel }] }]))
    cpSync(path('cinnabar.db'), join(root, 'copy.db'))
  })

  test('if ids were reserved after the copy was made', async () => {
    await serve([reserving])
    cpSync(join(root, 'copy.db'), path('cinnabar.db'))
    const restored = await serve()
    expectRestored(restored, 'is newer')
    expect(restored.generation).not.toBe(generation)
    expect(restored.generation).toMatch(/^[0-9a-f]{16}$/)
    expect([...restored.numbers].slice(0, 4)).toEqual([1, 0, NEXT, NEXT + SKIPPED])
  })

  test('until consumers were informed, also if the start did not come so far', async () => {
    await serve([reserving])
    cpSync(join(root, 'copy.db'), path('cinnabar.db'))
    expect((await serve()).restored).toBe(true)
    const again = await serve([told])
    expectRestored(again, 'not informed yet')
    // Ids are skipped once.
    expect(again.numbers[3]).toBe(NEXT + SKIPPED)
    expect((await serve()).restored).toBe(false)
  })

  test('in a copy of the whole directory', async () => {
    const copy = join(root, 'copied')
    cpSync(directory, copy, { recursive: true })
    expectRestored(await serve([told], { at: copy }), 'is a copy')
    expect((await serve([told], { at: copy })).restored).toBe(false)
    // Where it came from, nothing has changed.
    expect(await serve([told])).toMatchObject({ generation, restored: false })
  })

  test('with a file that is a copy, though everything else is as it was', async () => {
    renameSync(file(), path('other'))
    cpSync(path('other'), file())
    expectRestored(await serve([told]), 'is a copy')
  })

  test('without its file, or with one that cannot be read', async () => {
    rmSync(file())
    expectRestored(await serve([told]), 'is missing')
    writeFileSync(file(), '')
    expectRestored(await serve([told]), 'is missing')
    expect((await serve()).restored).toBe(false)
  })

  test('beside the file of another database', async () => {
    await serve([told], { at: join(root, 'other') })
    cpSync(join(root, 'other', 'generation'), file())
    expectRestored(await serve(), 'another database')
  })

  test('of an older format, where a newer one was served', async () => {
    const old = openSqlite(join(root, 'old.db'))
    migrate(old, MIGRATIONS.slice(0, 7))
    old.close()
    cpSync(join(root, 'old.db'), path('cinnabar.db'))
    expectRestored(await serve(), 'another database')
  })

  test('if the operator says so, with a new generation each time', async () => {
    const first = await serve([told], { restored: true })
    expectRestored(first, '--restored')
    expect(first.generation).not.toBe(generation)
    const second = await serve([told], { restored: true })
    expect(second.generation).not.toBe(first.generation)
    expect(existsSync(file())).toBe(true)
  })
})
