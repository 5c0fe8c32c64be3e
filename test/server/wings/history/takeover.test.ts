/** A node that begins to lead while a thread that followed still has the files of the history open. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { PasswordHasher } from '../../../../auth/password.ts'
import { createLogger } from '../../../../server/kernel/core/log.ts'
import { defaultConfig } from '../../../../server/start/config.ts'
import { startServer } from '../../../../server/start/server.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { TestProducer } from '../../../support/producer.ts'

it('serves consumers at once, and records when the files are free', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const base = defaultConfig()
  let leads = 0
  let release: () => void = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const server = await startServer({
    config: {
      ...base,
      producer: { name: 'n1', dataDir: directory },
      listen: { tcp: undefined, http: undefined, tls: undefined, https: undefined },
      gmetric: { ...base.gmetric, listen: undefined },
    },
    clock: new FakeClock(),
    store: (await TestProducer.firstStart()).crash(),
    hasher: new PasswordHasher({ rounds: 4 }),
    log: createLogger('silent'),
    sharedHistory: {
      // Nothing listens there.
      log: { cluster: 'main', node: 'n1', servers: ['nats://127.0.0.1:1'], replicas: 1, maxBytes: 1 << 20 },
      lead: () => {
        leads++
        return { log: 1, epoch: 1 }
      },
      released: () => released,
    },
  })
  expect(leads).toBe(0)
  release()
  await new Promise((resolve) => setImmediate(resolve))
  expect(leads).toBe(1)
  await server.stop()
})
