import { describe, expect, it } from 'vitest'
import { ConnectionError, StatusError } from '../../client/browser.ts'
import { reasonOf, refusalOf } from '../../console/refusals.ts'

describe('reasonOf', () => {
  it.each([
    [
      new StatusError('COLLECT', 7, 'no metric no.metric: `producer.metrics` lists what there is'),
      'There is no such metric, or you may not read it.',
    ],
    [new StatusError('QUERY', 11, 'no rule allows reading x'), 'No rule allows reading x.'],
    [new StatusError('EXECUTE', 13, ''), 'The server refuses it, and does not say why.'],
    [new StatusError('EXECUTE', 99, 'what is this?'), 'What is this?'],
    [new ConnectionError('CLOSED', 'the connection is lost'), 'The connection is lost.'],
    ['odd', 'Odd.'],
  ])('%s: %s', (error, reason) => expect(reasonOf(error)).toBe(reason))

  it.each(Array.from({ length: 18 }, (_, code) => code))('has no name of the protocol for the status %i', (code) => {
    expect(reasonOf(new StatusError('EXECUTE', code, ''))).not.toMatch(/[A-Z]{3}|_/)
    expect(reasonOf(new StatusError('EXECUTE', code, 'too much'))).not.toMatch(/[A-Z]{3}|_/)
  })
})

it('tells what the server refuses from what has failed', () => {
  expect(refusalOf(new StatusError('QUERY', 11, 'no')).isByServer).toBe(true)
  expect(refusalOf(new Error('no')).isByServer).toBe(false)
})
