/**
 * The hostile tenant as a process that does one thing in rounds: the same body from several connections at once, or reads
 * `/metrics` from hundreds. The first message is its job; each later one is the beginning of a round, and is answered at its end
 * with what the server has answered. It has what the server and the good tenant leave of the cores, since a neighbour mostly is at
 * another machine.
 */
import { once } from 'node:events'
import { Agent, type IncomingMessage, request as post } from 'node:http'
import { constants, setPriority } from 'node:os'
import { type CostlyBody, costlyBodies } from './bodies.ts'
import type { RoundsJob, RoundTally } from './rounds.ts'

/** A round takes at least so long: what is answered at once is done again. */
const LEAST_MS = 300

setPriority(constants.priority.PRIORITY_LOW)
const [{ port, token, places, shape }] = (await once(process, 'message')) as [RoundsJob]
const agent = new Agent({ keepAlive: true, maxSockets: places })
const body = costlyBodies().find(({ name }) => name === shape)

async function asked({ path, headers, body }: Omit<CostlyBody, 'name'>, method: string): Promise<IncomingMessage> {
  const authorization = `Bearer ${token}`
  const request = post({ host: '127.0.0.1', port, path, method, headers: { ...headers, authorization }, agent })
  request.end(body)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return response
}

async function answer(): Promise<IncomingMessage> {
  if (body !== undefined) return asked(body, 'POST')
  return asked({ path: '/metrics?metric=gmetric.*', headers: {}, body: new Uint8Array(0) }, 'GET')
}

async function round(): Promise<RoundTally> {
  const statuses: Record<string, number> = {}
  const end = performance.now() + LEAST_MS
  const place = async (): Promise<void> => {
    do {
      let status: string
      try {
        const response = await answer()
        for await (const _ of response);
        status = String(response.statusCode)
      } catch {
        status = 'ended'
      }
      statuses[status] = (statuses[status] ?? 0) + 1
    } while (body !== undefined && performance.now() < end)
  }
  await Promise.all(Array.from({ length: places }, place))
  return statuses
}

process.on('message', async () => process.send?.(await round()))
process.send?.('ready')
