/** The contents of one body: a broker reads on after most requests, but not after a call. */
import { expect, it } from 'vitest'
import { decodeBody } from '../../../../protocol/qmf/messages.ts'
import type { QmfMessage, SchemaLookup } from '../../../../protocol/qmf/types.ts'
import { newCounters } from '../../../../server/wings/qmf/console-events.ts'
import { QmfRequests } from '../../../../server/wings/qmf/requests.ts'
import { BytesWire } from '../../../../server/wings/qmf/wire.ts'
import { recordedKnown, tableOf } from './recorded.ts'

const known: SchemaLookup = recordedKnown
const { key } = tableOf('broker')

it('requests to a broker share a body, but each call has its own', () => {
  const bodies: string[] = []
  const requests = new QmfRequests({
    wire: new BytesWire(known, 'replies'),
    send: ({ transfer: { routingKey: to }, body }) => {
      const { messages } = decodeBody(body, known)
      bodies.push(`${to} ${messages.map(({ op }) => op).join('')}`)
    },
    counters: newCounters(),
  })
  const ask = (to: string, message: (sequence: number) => QmfMessage, isUrgent = false) =>
    requests.ask({ to, message, ended: () => {}, isUrgent })
  const get = (sequence: number): QmfMessage => ({ op: 'G', sequence, query: new Map([['_class', 'queue']]) })
  const call = (sequence: number): QmfMessage => {
    return { op: 'M', sequence, id: '0-0-1-0-2', key, method: 'getLogLevel', arguments: [] }
  }
  for (const to of ['agent.1.0', 'agent.1.10']) {
    ask(to, get)
    ask(to, get)
    ask(to, call, true)
    ask(to, call, true)
  }
  requests.flush(0)
  expect(bodies.slice(0, 3)).toEqual(['agent.1.0 M', 'agent.1.0 M', 'agent.1.0 GG'])
  expect(bodies.slice(3)).toEqual(['M', 'M', 'G', 'G'].map((op) => `agent.1.10 ${op}`))
})
