/** Turns: few of a tenant at once, others in their order, and nobody for whom no one waits any more. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { beforeEach, expect, it } from 'vitest'
import { endOf, Turns } from '../../../server/edge/turns.ts'
import { FakeClock } from '../../support/fake-clock.ts'

let clock: FakeClock
let turns: Turns
beforeEach(() => {
  clock = new FakeClock()
  turns = new Turns({ atOnce: 1, waiting: 2, patienceMs: 5_000, clock })
})

/** Something that takes until it is told to end. */
function job(tenant: string, name: string, ended = new AbortController()) {
  let end = (): void => {}
  const state = { begun: false, ended, end: () => end() }
  const result = turns.take(tenant, ended.signal, () => {
    state.begun = true
    return new Promise<string>((resolve) => {
      end = () => resolve(name)
    })
  })
  return Object.assign(state, { result })
}
const settled = () => new Promise((resolve) => setImmediate(resolve))

it('go in order within a tenant, while others do not wait', async () => {
  const [first, second, third, other] = [job('a', '1'), job('a', '2'), job('a', '3'), job('b', '4')]
  expect([first.begun, second.begun, third.begun, other.begun]).toEqual([true, false, false, true])
  expect(await job('a', 'one more').result).toBeUndefined()
  first.end()
  expect(await first.result).toBe('1')
  await settled()
  expect([second.begun, third.begun]).toEqual([true, false])
  second.end()
  await settled()
  third.end()
  expect(await third.result).toBe('3')
})

it('are not for those who have gone, or have waited for too long', async () => {
  const [first, gone, late] = [job('a', '1'), job('a', '2'), job('a', '3')]
  gone.ended.abort()
  expect(await gone.result).toBeUndefined()
  clock.advance(5_000)
  expect(await late.result).toBeUndefined()
  first.end()
  await first.result
  expect([gone.begun, late.begun]).toEqual([false, false])
  const next = job('a', '4')
  next.end()
  expect(await next.result).toBe('4')
})

it('are given back when what is done in one fails', async () => {
  const failed = turns.take('a', new AbortController().signal, () => Promise.reject(new Error('broken')))
  const next = job('a', '1')
  await expect(failed).rejects.toThrow('broken')
  await settled()
  expect(next.begun).toBe(true)
  next.end()
  expect(await next.result).toBe('1')
})

it('are not waited for by a request that had ended before anybody asked whether it has', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  const [, response] = (await once(server, 'request')) as [unknown, ServerResponse]
  const open = endOf(response)
  expect(open.aborted).toBe(false)
  socket.destroy()
  await once(response, 'close')
  expect([open.aborted, endOf(response).aborted]).toEqual([true, true])
  server.close()
})
