/** A real Mono with the agent, the server as a process of its own, and a consumer: counters from inside a living program. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Consumer, connect, plainOf } from '../../client/index.ts'
import { Application, buildAgent, compile, howTo, missing } from '../agents/application.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

const AGENT = { agent: '127.0.0.1' }
const COMMANDS = ['collect 3', 'throw 5']

let server: ServerProcess
let consumer: Consumer
let directory: string
let program: string
let options: string
let applications: Application[]

beforeAll(() => {
  if (missing) return
  buildAgent()
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-mono-'))
  program = compile(directory)
})
afterAll(() => {
  if (!missing) rmSync(directory, { recursive: true })
})
beforeEach(async () => {
  const port = await freePort()
  server = new ServerProcess(`[mono]\nlisten = "127.0.0.1:${port}"\n`, { tcp: await freePort() })
  await server.start()
  options = `port=${port},interval=50`
  applications = []
  consumer = await connect(`tcp://127.0.0.1:${server.tcpPort}`, { identity: 'admin', password: PASSWORD })
  void consumer.run().catch(() => {})
})
afterEach(async () => {
  await consumer.close()
  for (const application of applications) application.kill()
  await server.remove()
})

function run(agent: string | undefined): Application {
  const application = new Application(program, agent, ['obey'])
  applications.push(application)
  return application
}

/** With the agent, once the server knows what it offers. */
async function watched(): Promise<Application> {
  const application = run(options)
  await eventually(async () => expect((await list()).length).toBeGreaterThan(100))
  return application
}

interface Offered {
  readonly metric: string
  readonly sent: boolean
}

async function list(): Promise<readonly Offered[]> {
  const { value } = await consumer.execute('mono.list', AGENT)
  return (plainOf(value) as unknown as { value: readonly Offered[] }).value
}

const isSent = async (metric: string) => (await list()).find((offered) => offered.metric === metric)?.sent

/** The values of a counter as they come, the last one last. */
async function follow(metric: string): Promise<{ readonly values: number[]; stop(): Promise<void> }> {
  const values: number[] = []
  const followed = await consumer.follow(metric, AGENT, ({ plain }) => {
    if (plain !== null) values.push(Number(plain))
  })
  return { values, stop: () => followed.stop() }
}

/** Waits until a counter has come to so much. */
function reached(values: readonly number[], least: number): Promise<void> {
  return eventually(() => expect(values.at(-1)).toBeGreaterThanOrEqual(least))
}

// Mono is no package of npm, and not every machine has it.
describe.skipIf(missing)(`a Mono application with the agent${howTo}`, () => {
  test('shows its collections, its exceptions and what is compiled, and writes what it always writes', async () => {
    const alone = run(undefined)
    for (const command of [...COMMANDS, ...COMMANDS]) await alone.obey(command)
    const application = await watched()
    const collections = await follow('mono.gc.major_gc_collections')
    const thrown = await follow('mono.exceptions.thrown')
    const jitting = await follow('mono.jit.total_time_spent_jitting')
    for (const command of COMMANDS) await application.obey(command)
    // Only what changes is sent: these are the first values since the subscription.
    for (const { values } of [collections, thrown, jitting]) await reached(values, 1)
    const [collected, caught] = [collections.values[0]!, thrown.values[0]!]
    for (const command of COMMANDS) await application.obey(command)
    await reached(collections.values, collected + 3)
    await reached(thrown.values, caught + 5)
    for (const { values } of [collections, thrown, jitting]) expect(values).toEqual(values.toSorted((a, b) => a - b))
    expect(await application.end()).toEqual(await alone.end())
  })

  test('sends a counter from when it is asked for until nobody wants it', async () => {
    await watched()
    const metric = 'mono.metadata.monoclassdef_count'
    expect(await isSent(metric)).toBe(false)
    const { values, stop } = await follow(metric)
    await reached(values, 10)
    expect(await isSent(metric)).toBe(true)
    await stop()
    await eventually(async () => expect(await isSent(metric)).toBe(false))
  })

  test('comes again after a restart of the server, with what it was asked for', async () => {
    const application = await watched()
    const thrown = await follow('mono.exceptions.thrown')
    const added = await follow('mono.metadata.monoclassdef_count')
    await application.obey('throw 5')
    await reached(thrown.values, 1)
    await reached(added.values, 10)
    const before = thrown.values.at(-1)!
    await server.end('SIGTERM')
    await application.obey('throw 5')
    added.values.length = 0
    await server.start()
    await reached(thrown.values, before + 5)
    await reached(added.values, 10)
    expect(await application.end()).toMatchObject({ code: 7 })
  })
})
