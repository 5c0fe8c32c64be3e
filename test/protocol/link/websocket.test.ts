import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { WebSocket } from 'ws'
import { WebSocketLink } from '../../../protocol/link/websocket.ts'

/** A WebSocket whose peer takes what the test says and never answers the close. */
function unanswered() {
  const done: string[] = []
  const written: (() => void)[] = []
  const on = new Map<string, () => void>()
  const socket = {
    OPEN: 1,
    readyState: 1,
    binaryType: '',
    send: (_data: Uint8Array, _options: object, sent: () => void) => void written.push(sent),
    resume: () => {},
    close: () => void done.push('close'),
    terminate: () => void done.push('terminate'),
    on: (event: string, listener: () => void) => void on.set(event, listener),
  }
  return {
    fail: () => on.get('error')?.(),
    link: new WebSocketLink(socket as unknown as WebSocket),
    done,
    take: () => written.shift()?.(),
  }
}

describe('after its last words', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('a WebSocket waits a second for the peer to close too', () => {
    const { link, done } = unanswered()
    link.end(1000, 'over')
    vi.advanceTimersByTime(999)
    expect(done).toEqual(['close'])
    vi.advanceTimersByTime(1)
    expect(done).toEqual(['close', 'terminate'])
  })

  it('the second begins when the peer has taken what was written before', () => {
    const { link, done, take } = unanswered()
    link.write(new Uint8Array(1))
    link.write(new Uint8Array(1))
    take()
    link.end()
    vi.advanceTimersByTime(20_000)
    take()
    vi.advanceTimersByTime(999)
    expect(done).toEqual(['close'])
    vi.advanceTimersByTime(1)
    expect(done).toEqual(['close', 'terminate'])
  })

  it('a WebSocket whose peer broke the protocol is given as long', () => {
    const { link, done, fail } = unanswered()
    link.listen({ data: () => {}, finished: () => {}, closed: () => void done.push('closed') })
    fail()
    vi.advanceTimersByTime(999)
    expect(done).toEqual(['closed'])
    vi.advanceTimersByTime(1)
    expect(done).toEqual(['closed', 'terminate'])
  })
})
