/** The bytes are those of docs/protocol/smon.md, put together by hand. */
import { expect, test } from 'vitest'
import { METRIC, streamContinuation, streamStart } from '../../../cli/demo/server.ts'

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

test('a stream begins with a definition: token 0, type and name, new token 1, and an absolute value', () => {
  const name = Buffer.from('demo.number').toString('hex')
  expect(METRIC).toBe('smon.demo.number')
  expect(hex(streamStart(1))).toBe(`000c75${name}01f300000001`)
  expect(hex(streamStart(70_000))).toBe(`000c75${name}01f300011170`)
})

test('each further number is a step of 1 of the same token', () => {
  expect(hex(streamContinuation(3))).toBe('000100010001')
})
