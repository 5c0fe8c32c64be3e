/** A listener for streams: what a source throws for one connection costs that connection. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../../../../server/kernel/core/clock.ts'
import { FeedTurns, Pacer, type StreamTaker } from '../../../../server/kit/io/pacer.ts'
import { listenStreams, type StreamListening } from '../../../../server/kit/io/tcp.ts'

let listening: StreamListening
afterEach(() => listening.close())

/** Opens a listener, and returns what it reported and a function that sends a text and waits for the end: `end` or an error. */
async function listen(open: () => StreamTaker) {
  const failures: string[] = []
  const failed = (error: unknown): void => void failures.push((error as Error).message)
  const clock = systemClock()
  const storage = { behind: () => false, whenStored: () => {} }
  const pacer = new Pacer({ storage, turns: new FeedTurns(clock), clock, failed })
  listening = await listenStreams({
    address: { host: '127.0.0.1', port: 0 },
    key: 'smon.tcp',
    open: () => ({ taker: open(), pacer }),
    failed,
  })
  const send = async (text: string): Promise<string> => {
    const socket: Socket = connect(listening.address)
    const ended = new Promise<string>((resolve) => {
      socket.on('end', () => resolve('end'))
      socket.on('error', (error) => resolve((error as NodeJS.ErrnoException).code ?? ''))
    })
    socket.resume()
    await Promise.race([once(socket, 'connect'), ended])
    socket.end(text)
    return ended
  }
  return { failures, send }
}

test('a stream whose bytes cannot be handled is reset, not confirmed, and the next one is taken', async () => {
  const taken: string[] = []
  const { failures, send } = await listen(() => ({
    push: (bytes) => {
      const text = Buffer.from(bytes).toString()
      if (text === 'bad') throw new Error('broken')
      taken.push(text)
    },
    end: () => taken.push('.'),
  }))
  expect(await send('bad')).toBe('ECONNRESET')
  expect(await send('good')).toBe('end')
  expect([taken, failures]).toEqual([['.', 'good', '.'], ['broken']])
})

test('a connection that a source cannot open is reset', async () => {
  let opened = 0
  const { failures, send } = await listen(() => {
    if (opened++ === 0) throw new Error('no room')
    return { push: () => {}, end: () => {} }
  })
  expect(await send('')).toBe('ECONNRESET')
  expect(await send('')).toBe('end')
  expect(failures).toEqual(['no room'])
})
