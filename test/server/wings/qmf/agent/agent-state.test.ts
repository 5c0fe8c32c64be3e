/** What agents of QMF remember: in the database, and once from the file of an older server. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Starts } from './fixture.ts'

const ID = '6f1d8c52-1c2d-4000-8000-0123456789ab'
const UNREADABLE = 'the state file of the QMF agents cannot be read: they will be new agents to their brokers'

let directory: string
let file: string
let starts: Starts
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-agent-'))
  file = join(directory, 'qmf-agent.json')
  starts = new Starts(directory)
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

describe('what agents remember', () => {
  it('is made at the first start', () => {
    const first = starts.next()
    expect(first.systemId).toMatch(/^[0-9a-f-]{36}$/)
    expect([first.boot, first.banks('b1'), starts.warned]).toEqual([1, undefined, []])
    expect(starts.row).toEqual({ systemId: first.systemId, boot: 1, banks: '{}' })
    expect(existsSync(file)).toBe(false)
  })

  it('comes back at the next one, which is another boot', () => {
    const first = starts.next()
    first.keep('b1', { brokerBank: 1, agentBank: 10 })
    first.keep('b1', { brokerBank: 1, agentBank: 12 })
    const second = starts.next()
    expect([second.systemId, second.boot]).toEqual([first.systemId, 2])
    expect(second.banks('b1')).toEqual({ brokerBank: 1, agentBank: 12 })
  })

  it('counts boots up to what an object id holds, and begins anew', () => {
    starts.row = { systemId: ID, boot: 4094, banks: '{}' }
    expect([starts.next().boot, starts.next().boot]).toEqual([4095, 1])
  })

  it.each([[1, 0], [1, 1 << 28], [1 << 20, 10], [1, 1e12], [-1, 10], [1, 1.5], ['1', '10'], [1]])(
    'are no banks that no agent has: %s.%s',
    (brokerBank?: unknown, agentBank?: unknown) => {
      const banks = JSON.stringify({ b1: { brokerBank, agentBank }, b2: { brokerBank: 0, agentBank: 1 } })
      starts.row = { systemId: ID, boot: 1, banks }
      const next = starts.next()
      expect([next.banks('b1'), next.banks('b2')]).toEqual([undefined, { brokerBank: 0, agentBank: 1 }])
    },
  )

  it.each(['{"b1', '[]', '5', 'null', '{"b1": [1]}'])('are no banks where the row holds %s', (banks) => {
    starts.row = { systemId: ID, boot: 1, banks }
    const next = starts.next()
    expect([next.systemId, next.boot, next.banks('b1')]).toEqual([ID, 2, undefined])
  })
})

describe('the file of an older server', () => {
  const BANKS = { b1: { brokerBank: 1, agentBank: 12 } }

  it('is taken over once, and stays as it is', () => {
    const text = JSON.stringify({ systemId: ID, boot: 7, banks: BANKS })
    writeFileSync(file, text)
    const first = starts.next()
    expect([first.systemId, first.boot, first.banks('b1')]).toEqual([ID, 8, BANKS.b1])
    expect(starts.row).toEqual({ systemId: ID, boot: 8, banks: JSON.stringify(BANKS) })
    expect(starts.next().boot).toBe(9)
    expect([readFileSync(file, 'utf8'), starts.warned]).toEqual([text, []])
  })

  it('means nothing where the database has an agent: it belongs to another database', () => {
    writeFileSync(file, JSON.stringify({ systemId: ID, boot: 7, banks: BANKS }))
    starts.row = { systemId: ID.replace('6', '7'), boot: 2, banks: '{}' }
    const next = starts.next()
    expect([next.systemId, next.boot, next.banks('b1')]).toEqual([ID.replace('6', '7'), 3, undefined])
  })

  it.each(['{"systemId": 5, "boot"', '[]', '5'])('is said to be unreadable where it holds %s', (text) => {
    writeFileSync(file, text)
    const first = starts.next()
    expect([first.boot, first.banks('b1'), starts.warned]).toEqual([1, undefined, [UNREADABLE]])
    expect(starts.next().systemId).toBe(first.systemId)
  })

  it('gives a new agent where its values are none', () => {
    writeFileSync(file, '{"systemId": "me", "boot": -1, "banks": {"b1": [1]}}')
    const first = starts.next()
    expect(first.systemId).toMatch(/^[0-9a-f-]{36}$/)
    expect([first.boot, first.banks('b1')]).toEqual([1, undefined])
  })

  it('is not read where somebody put something huge there, or a directory', () => {
    writeFileSync(file, JSON.stringify({ boot: 7, more: 'x'.repeat(1 << 20) }))
    expect(starts.next().boot).toBe(1)
    starts.row = undefined
    rmSync(file)
    mkdirSync(file)
    expect(starts.next().boot).toBe(1)
    expect(starts.warned).toEqual([UNREADABLE, UNREADABLE])
  })
})
