/** What a rule has wait for approval waits, whatever an agent does: `submit` says so, and later what has become of it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Consumer, connect } from '../../../client/index.ts'
import { eventually } from '../../support/eventually.ts'
import { PASSWORD } from '../../support/server-process.ts'
import { type Agent, AgentWorld, type ToolReply } from './agent.ts'

const world = new AgentWorld(`
[[exec]]
name = "exec.note"
argv = ["sh", "-c", 'echo "$1" | tee -a "$2"', "sh", "{word}", "{file}"]
dry_run_argv = ["echo", "would note {word}"]
[[exec.parameter]]
name = "word"
pattern = "[a-z]*"
[[exec.parameter]]
name = "file"
pattern = ".*"
`)
const file = join(world.server.directory, 'notes')
const notes = () => readFileSync(file, 'utf8')
let agent: Agent
let lead: Consumer

beforeAll(async () => {
  writeFileSync(file, '')
  await world.start()
  const rule = { role: 'agent', command: 'EXECUTE', object: 'exec.note' }
  await world.run('role.allow', { ...rule, approval: 'lead' })
  await world.run('role.allow', { ...rule, where: 'word=free' })
  await world.run('role.allow', { role: 'lead', command: 'COLLECT', object: '*' })
  await world.user('robot', 'agent')
  await world.user('luis', 'lead')
  agent = await world.overStdio('robot')
  lead = await connect(world.url, { identity: 'luis', password: PASSWORD }, { durable: false })
})
afterAll(async () => {
  await agent?.close()
  await lead?.close()
  await world.remove()
})

async function proposed(word: string): Promise<string> {
  const { answer, text } = await agent.call('propose', { control: 'exec.note', arguments: { word, file } })
  expect(answer, text).toMatchObject({ outcome: 'dry-run', value: { stdout: `would note ${word}\n` } })
  return String(answer?.['proposal'])
}

/** The id by which somebody may approve what an answer says is waiting. */
function idOf(answer: ToolReply['answer']): string {
  const [first] = (answer?.['approvals'] ?? []) as { id: string }[]
  return first?.id ?? ''
}

async function decide(control: string, id: string, reason?: string): Promise<void> {
  const { plain } = await lead.execute(control, { id, ...(reason !== undefined && { reason }) })
  expect(plain).toMatchObject({ outcome: 'ok' })
}

it('it runs once when somebody else approves it, however often it is submitted', async () => {
  const proposal = await proposed('first')
  const { answer } = await agent.call('submit', { proposal })
  expect(answer).toMatchObject({
    state: 'waiting for approval',
    approvals: [{ role: 'lead', until: expect.any(String) }],
  })
  expect(answer).not.toHaveProperty('outcome')
  const again = await agent.call('submit', { proposal })
  expect(again.answer).toMatchObject({ state: 'waiting for approval', approvals: answer?.['approvals'] })
  expect(notes()).toBe('')
  // However often it is asked for, it waits once, and nothing more comes to the channel.
  const { plain } = await lead.query('producer.approvals')
  expect(plain).toHaveLength(1)
  const id = idOf(answer)
  await eventually(() => decide('control.approve', id))
  const ended = await agent.call('submit', { proposal })
  expect(ended.answer).toMatchObject({ state: 'ended', outcome: 'ok', value: { stdout: 'first\n' }, approvals: [] })
  expect(notes()).toBe('first\n')
})

it('an agent cannot approve what it has asked for', async () => {
  const proposal = await proposed('second')
  const { answer } = await agent.call('submit', { proposal })
  const id = idOf(answer)
  const own = await agent.call('propose', { control: 'control.approve', arguments: { id } })
  expect(own.text).toMatch(/nobody approves what they have asked for/)
  await eventually(() => decide('control.refuse', id, 'not today'))
  const ended = await agent.call('submit', { proposal })
  expect(ended.answer).toMatchObject({
    state: 'ended',
    outcome: 'refused',
    detail: expect.stringContaining('not today'),
  })
  expect(notes()).toBe('first\n')
})

it('a program that was started again learns what has become of it', async () => {
  const proposal = await proposed('third')
  const { answer } = await agent.call('submit', { proposal })
  const id = idOf(answer)
  await agent.close()
  await eventually(() => decide('control.approve', id))
  agent = await world.overStdio('robot')
  expect((await agent.call('submit', { proposal })).text).toMatch(/`propose` it again, with this `proposal`/)
  const known = { control: 'exec.note', arguments: { word: 'third', file }, proposal }
  expect((await agent.call('propose', known)).answer).toMatchObject({ proposal })
  const ended = await agent.call('submit', { proposal })
  expect(ended.answer).toMatchObject({ state: 'ended', outcome: 'ok', value: { stdout: 'third\n' } })
  expect(notes()).toBe('first\nthird\n')
})

it('what needs no approval runs when it is submitted', async () => {
  const { answer } = await agent.call('submit', { proposal: await proposed('free') })
  expect(answer).toMatchObject({ state: 'ended', outcome: 'ok' })
  expect(notes()).toBe('first\nthird\nfree\n')
})
