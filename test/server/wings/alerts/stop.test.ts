/** A server with rules is stopped while they are due. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { defaultConfig } from '../../../../server/start/config.ts'
import type { StoreEvents } from '../../../../storage/store.ts'
import { eventually } from '../../../support/eventually.ts'
import { TestProducer } from '../../../support/producer.ts'

const EVER_MS = 36_500 * 86_400_000
/** Reads what is durable. */
const READER: StoreEvents = { onDurable() {}, onFull() {}, onRoom() {}, onFailed() {} }
const RULES = `groups:
  - name: always
    interval: 10s
    rules:
      - alert: Always
        expr: vector(1)
        for: 30s
`

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-alerts-'))
  writeFileSync(join(directory, 'rules.yml'), RULES)
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

it('a stop loses no transition: none is stored after bindings have ended', async () => {
  const producer = await TestProducer.start({
    config: {
      history: { ...defaultConfig().history, keepMs: EVER_MS, keepRollupsMs: EVER_MS, metrics: ['rules.*'] },
      alerts: { ...defaultConfig().alerts, builtin: false, rules: [join(directory, 'rules.yml')] },
    },
  })
  const second = async (): Promise<void> => {
    producer.clock.advance(1_000)
    await producer.settle()
  }
  const found = () => producer.store.copy().open(READER)
  await eventually(async () => {
    await second()
    expect((await found()).alerts).toMatchObject([{ state: 'pending' }])
  })
  producer.store.manual = true
  const stopping = producer.server.stop()
  // The alert would fire meanwhile.
  for (let seconds = 0; seconds < 60; seconds++) await second()
  producer.store.manual = false
  producer.store.complete()
  await stopping
  const { alerts, alertGroups } = await found()
  expect([alerts, alertGroups]).toMatchObject([[{ state: 'pending' }], [{ sequence: 1 }]])
  rmSync(producer.dataDir, { recursive: true, force: true })
})
