/** A server whose store fails or belongs to another node: what consumers see, and that everything of it ends. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { PasswordHasher } from '../../../auth/password.ts'
import { createLogger } from '../../../server/kernel/core/log.ts'
import { defaultConfig } from '../../../server/start/config.ts'
import { type RunningServer, startServer } from '../../../server/start/server.ts'
import { StorageError } from '../../../storage/store.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import type { MemoryStore } from '../../support/memory-store/store.ts'
import { TestProducer } from '../../support/producer.ts'

const DEPOSED = new StorageError('DEPOSED', 'another node leads')
const SHUTTING_DOWN = 3

describe('a server that is deposed', () => {
  test('dismisses its sessions, and writes nothing more; another one goes on with what was durable', async () => {
    const producer = await TestProducer.start()
    const seat = await producer.seat()
    const channel = await seat.defChannel()
    await seat.follow('test.a', channel)
    producer.emit(1)
    await producer.settle()
    const survivor = producer.store.crash()
    await producer.server.depose()
    await producer.settle()
    const notices = seat.rest().filter((message) => message.kind === 'notice')
    expect(notices.map((message) => ('code' in message ? message.code : undefined))).toContain(SHUTTING_DOWN)
    // Nothing begins again.
    producer.clock.advance(60_000)
    expect(producer.clock.timers).toBe(0)
    // In the same process.
    const next = await TestProducer.start({ store: survivor })
    expect([...next.server.parts.producer.registry.all()].map(({ id }) => id)).toContain(channel)
    await next.stop()
  })
})

describe('a store that fails', () => {
  let directory: string
  let store: MemoryStore
  let clock: FakeClock
  const failures: Error[] = []
  beforeEach(async () => {
    failures.length = 0
    directory = mkdtempSync(join(tmpdir(), 'cinnabar-'))
    store = (await TestProducer.firstStart()).crash()
    clock = new FakeClock()
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  function start(): Promise<RunningServer> {
    const base = defaultConfig()
    return startServer({
      config: {
        ...base,
        producer: { name: 'n1', dataDir: directory },
        listen: { tcp: undefined, http: undefined, tls: undefined, https: undefined },
        gmetric: { ...base.gmetric, listen: undefined },
      },
      clock,
      store,
      hasher: new PasswordHasher({ rounds: 4 }),
      log: createLogger('silent'),
      onFailed: (error) => void failures.push(error),
    })
  }

  async function turns(): Promise<void> {
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  }

  test('while the server starts: the start fails, and everything is closed', async () => {
    store.manual = true
    const started = start()
    const refused = expect(started).rejects.toBe(DEPOSED)
    await turns()
    store.fail(DEPOSED)
    await refused
    expect(failures).toEqual([DEPOSED])
    expect(clock.timers).toBe(0)
  })

  test('while it stops: the stop fails, and everything is closed', async () => {
    const server = await start()
    store.manual = true
    const refused = expect(server.stop()).rejects.toBe(DEPOSED)
    await turns()
    store.fail(DEPOSED)
    await refused
    expect(clock.timers).toBe(0)
  })

  test('before it stops: the stop has nothing to store', async () => {
    const server = await start()
    store.fail(DEPOSED)
    await server.stop()
    expect(failures).toEqual([DEPOSED])
    expect(clock.timers).toBe(0)
  })
})
