/** An agent outlives its server: while that is away each call says so, and afterwards calls are answered again. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { freePort } from '../../support/free-port.ts'
import { type Agent, AgentWorld } from './agent.ts'

let world: AgentWorld
const agents: Agent[] = []

beforeAll(async () => {
  world = new AgentWorld('[alerts]\nbuiltin = false\n', { tcp: await freePort() })
  await world.start()
  await world.user('robot', 'consumer')
})
afterAll(async () => {
  for (const agent of agents) await agent.close()
  await world.remove()
})

const often = ['--calls-per-minute', '100000']
const read = (agent: Agent) => agent.call('metrics_read', { metric: 'host.load.one' })

it('one that was begun before the server was there, and one that had it already', async () => {
  const before = await world.overStdio('robot', often)
  agents.push(before)
  expect((await read(before)).answer).toBeDefined()
  await world.admin.close()
  await world.server.end('SIGKILL')
  const late = await world.overStdio('robot', often)
  agents.push(late)
  const { answer, text } = await read(late)
  expect(answer).toBeUndefined()
  expect(text).toMatch(/^the server cannot be asked: .*\(UNREACHABLE\)$/)
  await world.start()
  for (const agent of agents) await eventually(async () => expect((await read(agent)).answer).toBeDefined())
  // This server has no rules.
  expect((await before.call('alerts')).answer).toMatchObject({ alerts: [], total: 0 })
})
