/**
 * A database that goes back: what a program gets that keeps its place itself, and what the channel reports. Nothing that arrives
 * after the restore may be taken for something that was handled before.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PasswordHasher } from '../../../auth/password.ts'
import { type ChannelOptions, type Consumer, connect, type Place } from '../../../client/index.ts'
import { createLogger } from '../../../server/kernel/core/log.ts'
import { defaultConfig } from '../../../server/start/config.ts'
import { type RunningServer, restoreBackup, startServer } from '../../../server/start/server.ts'
import { SqliteStore } from '../../../storage/sqlite/store.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { EPOCH } from '../../support/producer.ts'
import { PushSensor } from '../../support/test-sensor.ts'

const PASSWORD = 'a password for tests'
/** Longer than a channel has to be quiet to give its range of ids back. */
const QUIET_MS = 13_000

let root = ''
let data = ''
let clock: FakeClock
let running: { server: RunningServer; store: SqliteStore; push: PushSensor; log: string[] }
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'restore-'))
  data = join(root, 'data')
  clock = new FakeClock()
  await start()
})
afterEach(async () => {
  await running.server.stop()
  rmSync(root, { recursive: true, force: true })
})

async function start(restored = false): Promise<void> {
  const base = defaultConfig()
  const config = {
    ...base,
    producer: { name: 'n1', dataDir: data },
    listen: { ...base.listen, tcp: { host: '127.0.0.1', port: 0 }, http: undefined },
    gmetric: { ...base.gmetric, listen: undefined, listenNamed: false },
    auth: { ...base.auth, scramIterations: 4096 },
  }
  const log: string[] = []
  let push: PushSensor | undefined
  const store = new SqliteStore({ directory: data, restored })
  const server = await startServer({
    config,
    clock,
    store,
    hasher: new PasswordHasher({ rounds: 4 }),
    log: createLogger('warn', { write: (line) => void log.push(line) }),
    sensors: (hub) => {
      push = new PushSensor(hub)
    },
    adminPassword: PASSWORD,
  })
  running = { server, store, log, push: push as unknown as PushSensor }
}

async function consumer(options: ChannelOptions = {}): Promise<Consumer> {
  const url = `tcp://127.0.0.1:${running.server.tcp?.port}`
  return connect(url, { identity: 'admin', password: PASSWORD }, { reconnect: false, ...options })
}

function emit(first: number, last: number): void {
  for (let value = first; value <= last; value++) running.push.push('test.a', { type: 2, value }, EPOCH + value)
}

/** Takes values until `last`, and returns them with what else happened, in order; and the place after them. */
async function take(reader: Consumer, last: number): Promise<{ seen: unknown[]; place: Place }> {
  const seen: unknown[] = []
  reader.on('gap', ({ reason, count }) => seen.push({ reason, count }))
  reader.on('restored', () => seen.push('restored'))
  let place: Place = { generation: reader.generation, transaction: 0 }
  for await (const sample of reader) {
    seen.push(sample.plain)
    place = sample.place
    if (sample.plain === last) break
  }
  await reader.commit(place.transaction, { through: true })
  await reader.close()
  return { seen, place }
}

const stored = (): Promise<void> => running.server.parts.producer.journal.whenStored()
const copy = (): string => join(root, 'copy.db')

/** How a copy is made, and how it is put back. */
const ways = {
  'backup and restore': {
    make: () => running.store.backup(copy(), () => {}),
    restore: async () => restoreBackup({ file: copy(), directory: data }),
  },
  'files copied by hand': {
    make: async () => {
      // As `sqlite3 cinnabar.db ".backup copy.db"` does it, in a process of its own.
      const program =
        'const { openSqlite } = await import(process.argv[1]); await openSqlite(process.argv[2], { readonly: true }).backup(process.argv[3])'
      const driver = new URL('../../../dist/storage/sqlite/driver.js', import.meta.url).href
      execFileSync(process.execPath, ['--input-type=module', '-e', program, driver, join(data, 'cinnabar.db'), copy()])
    },
    restore: async () => {
      for (const end of ['-wal', '-shm']) rmSync(join(data, `cinnabar.db${end}`), { force: true })
      copyFileSync(copy(), join(data, 'cinnabar.db'))
    },
  },
}
const restored = { reason: 'restored', count: 0 }
const numbers = (first: number, last: number): number[] =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index)

describe.each(Object.entries(ways))('after %s', (way, { make, restore }) => {
  describe.each([
    { kind: 'quiet', quietMs: QUIET_MS },
    { kind: 'busy', quietMs: 0 },
  ])('of a $kind channel', ({ quietMs }) => {
    it.each(['stop', 'abort'] as const)(
      'a program that keeps its place gets every value that arrives then (%s)',
      async (end) => {
        const first = await consumer()
        await first.follow('test.a', { host: 'h1' })
        const { channel } = first
        emit(1, 5)
        const { place } = await take(first, 5)
        clock.advance(quietMs)
        await stored()
        await make()
        emit(6, 25)
        const later = await take(await consumer({ channel, after: place }), 25)
        expect(later.seen).toEqual(numbers(6, 25))
        await stored()
        await running.server[end]()
        await restore()
        await start()
        emit(26, 35)
        const last = await take(await consumer({ channel, after: later.place }), 35)
        if (way === 'files copied by hand' && quietMs === 0 && end === 'abort') {
          // No id was reserved after the copy was made, so none was given that it does not know: it is like any unclean end.
          expect(last.seen).toEqual([{ reason: 'restart', count: 0 }, ...numbers(26, 35)])
        } else {
          expect(last.seen).toEqual(['restored', restored, ...numbers(26, 35)])
          expect(last.place.generation).not.toBe(later.place.generation)
          expect(last.place.transaction - later.place.transaction).toBeGreaterThan(2 ** 35)
          expect(running.log.join()).toContain('counts as restored')
        }
        // Only once.
        await running.server.stop()
        await start()
        emit(36, 37)
        const again = await take(await consumer({ channel, after: last.place }), 37)
        expect(again.seen).toEqual([36, 37])
      },
    )
  })
})

it('what was committed after the backup was made comes again, and what was not is still there', async () => {
  const first = await consumer()
  await first.follow('test.a', { host: 'h1' })
  const { channel } = first
  emit(1, 5)
  await stored()
  await running.store.backup(copy(), () => {})
  const { place } = await take(first, 3)
  await running.server.stop()
  restoreBackup({ file: copy(), directory: data })
  await start()
  emit(6, 6)
  const { seen } = await take(await consumer({ channel, after: place }), 6)
  expect(seen).toEqual(['restored', 1, 2, 3, 4, 5, restored, 6])
})

it('a machine that was set back as a whole is noticed only if the operator says so', async () => {
  const first = await consumer()
  await first.follow('test.a', { host: 'h1' })
  const { channel } = first
  emit(1, 2)
  const { place } = await take(first, 2)
  await running.server.stop()
  await start(true)
  emit(3, 3)
  const { seen } = await take(await consumer({ channel, after: place }), 3)
  expect(seen).toEqual(['restored', restored, 3])
})
