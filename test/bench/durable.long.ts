/** The benchmark `durable` still does what it says. How fast is nobody's business here. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cinnabar } from './durable-cinnabar.ts'
import { openCinnabarConsumer } from './durable-consumer.ts'
import { openSmonPublisher } from './durable-publisher.ts'
import { runOnce } from './durable-run.ts'
import type { Started } from './peers/contender.ts'
import type { Commits, End } from './processes/end.ts'

const VALUES = 5_000
const IN_ORDER: Commits = { through: false, shuffle: 0, writeAll: false }
const contender = cinnabar(VALUES, IN_ORDER)

describe('durable', () => {
  it('brings every value from process to process, each committed, and tells what that cost', async () => {
    const figures = await runOnce(contender, tmpdir())
    expect(figures).toMatchObject({ name: 'cinnabar', values: VALUES, dropped: 0 })
    for (const figure of ['valuesPerSecond', 'cpuPerMillion', 'peakRssMiB', 'loopDelayP99Ms'] as const) {
      expect(figures[figure], figure).toBeGreaterThan(0)
    }
  })
})

describe('the consumer of durable', () => {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-bench-'))
  const ends: End[] = []
  let started: Started

  beforeAll(async () => {
    started = await contender.start(directory)
  })

  /** Not before all are done: a publisher that leaves is told to whoever has subscribed. */
  afterAll(async () => {
    for (const end of ends) end.close()
    await started.server.stop()
    rmSync(directory, { recursive: true })
  })

  it.each([
    ['value by value', {}],
    ['shuffled', { shuffle: 1_000 }],
    ['by one COMMIT per read', { through: true }],
    ['not before a value is stored', { writeAll: true }],
  ])('has all values committed and answered: %s', async (_, way) => {
    const consumer = await openCinnabarConsumer({ ...started.consumer, commits: { ...IN_ORDER, ...way } })
    const publisher = await openSmonPublisher(started.publisher)
    ends.push(consumer, publisher)
    const [outcome] = await Promise.all([consumer.run(), publisher.run()])
    expect(outcome).toMatchObject({ dropped: 0 })
  })

  it('fails when more comes than was sent', async () => {
    const consumer = await openCinnabarConsumer({ ...started.consumer, values: VALUES - 1 })
    const publisher = await openSmonPublisher(started.publisher)
    ends.push(consumer, publisher)
    await Promise.all([expect(consumer.run()).rejects.toThrow('more than were sent'), publisher.run()])
  })
})
