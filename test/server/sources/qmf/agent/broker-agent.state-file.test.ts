import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AgentStateFile } from '../../../../../server/sources/qmf/agent/broker-agent.ts'

let directory: string
let file: string
let warned: string[]
const log = { warn: (_: object, text: string) => void warned.push(text) }
const start = () => new AgentStateFile(directory, log as never)
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-agent-'))
  file = join(directory, 'qmf-agent.json')
  warned = []
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

describe('what agents remember', () => {
  it('is made at the first start, for the owner alone', () => {
    const first = start()
    expect(first.systemId).toMatch(/^[0-9a-f-]{36}$/)
    expect([first.boot, first.banks('b1'), warned]).toEqual([1, undefined, []])
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('comes back at the next one, which is another boot', () => {
    const first = start()
    first.keep('b1', { brokerBank: 1, agentBank: 10 })
    first.keep('b1', { brokerBank: 1, agentBank: 12 })
    const second = start()
    expect([second.systemId, second.boot]).toEqual([first.systemId, 2])
    expect(second.banks('b1')).toEqual({ brokerBank: 1, agentBank: 12 })
  })

  it('counts boots up to what an object id holds, and begins anew', () => {
    start()
    writeFileSync(file, readFileSync(file, 'utf8').replace('"boot":1', '"boot":4094'))
    expect([start().boot, start().boot]).toEqual([4095, 1])
  })

  it.each([[1, 0], [1, 1 << 28], [1 << 20, 10], [1, 1e12], [-1, 10], [1, 1.5], ['1', '10'], [1]])(
    'are no banks that no agent has: %s.%s',
    (brokerBank?: unknown, agentBank?: unknown) => {
      writeFileSync(
        file,
        JSON.stringify({ banks: { b1: { brokerBank, agentBank }, b2: { brokerBank: 0, agentBank: 1 } } }),
      )
      const first = start()
      expect([first.banks('b1'), first.banks('b2')]).toEqual([undefined, { brokerBank: 0, agentBank: 1 }])
    },
  )

  it.each(['{"systemId": 5, "boot"', '[]', '5', '{"systemId": "me", "boot": -1, "banks": {"b1": [1]}}'])(
    'is made anew where the file holds %s',
    (text) => {
      writeFileSync(file, text)
      const first = start()
      expect([first.boot, first.banks('b1')]).toEqual([1, undefined])
      expect(first.systemId).toMatch(/^[0-9a-f-]{36}$/)
      expect(start().systemId).toBe(first.systemId)
    },
  )

  it('is not read where somebody put something huge there', () => {
    writeFileSync(file, JSON.stringify({ boot: 7, more: 'x'.repeat(1 << 20) }))
    expect(start().boot).toBe(1)
    expect(warned).toEqual([
      'the state file of the QMF agents cannot be read: they will be new agents to their brokers',
    ])
    expect(start().boot).toBe(2)
  })

  it('is said to be lost where it cannot be read or written, and the server goes on', () => {
    mkdirSync(file)
    expect(start().boot).toBe(1)
    expect(warned).toEqual([
      'the state file of the QMF agents cannot be read: they will be new agents to their brokers',
      'the state file of the QMF agents cannot be written',
    ])
  })
})
