import { expect, test } from 'vitest'
import { BodyPacker, MAX_BODY_BYTES } from '../../../protocol/qmf/messages.ts'

const message = (length: number, byte: number) => new Uint8Array(length).fill(byte)

test('messages follow each other, and a body is returned before it gets too long', () => {
  const bodies = new BodyPacker()
  const half = MAX_BODY_BYTES / 2
  expect(bodies.add(message(half, 1))).toBeUndefined()
  expect(bodies.add(message(half, 2))).toBeUndefined()
  expect(bodies.add(message(1, 3))).toEqual(new Uint8Array(Buffer.concat([message(half, 1), message(half, 2)])))
  expect(bodies.add(message(2, 4))).toBeUndefined()
  expect(bodies.rest()).toEqual(Uint8Array.of(3, 4, 4))
  expect(bodies.rest()).toBeUndefined()
})

test('a message that is too long alone does not follow an empty body', () => {
  const bodies = new BodyPacker()
  expect(bodies.add(message(MAX_BODY_BYTES + 1, 1))).toBeUndefined()
  expect(bodies.add(message(1, 2))?.length).toBe(MAX_BODY_BYTES + 1)
})
