/** Wrong servers: proxies before a right one, through which every message of the producer goes, to be changed. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { WebSocket, WebSocketServer } from 'ws'

/** What is sent instead of a frame (with its length); one per connection, so that it can count. */
export type Mutation = () => (frame: Buffer) => readonly Buffer[]

export interface MutatingProxy {
  readonly address: string
  close(): Promise<void>
}

/** `keepsOpen`: an end of the producer is not passed on. */
export async function startMutatingProxy(
  target: string,
  mutation: Mutation,
  keepsOpen = false,
): Promise<MutatingProxy> {
  const { hostname, port } = new URL(target)
  const open = new Set<Socket>()
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (near) => {
    const far = connect({ host: hostname, port: Number(port), noDelay: true, allowHalfOpen: true })
    open.add(near)
    const mutate = mutation()
    let rest = Buffer.alloc(0)
    far.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk])
      while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32BE(0)) {
        const end = 4 + rest.readUInt32BE(0)
        for (const frame of mutate(Buffer.from(rest.subarray(0, end)))) near.write(frame)
        rest = rest.subarray(end)
      }
    })
    near.on('data', (chunk: Buffer) => far.write(chunk))
    near.on('end', () => far.end())
    far.on('end', () => keepsOpen || near.end())
    near.on('close', () => {
      open.delete(near)
      far.destroy()
    })
    for (const socket of [near, far]) socket.on('error', () => socket.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      for (const socket of open) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

/** The same before `monitoring.json`: what is sent instead of a text, and the close code instead of another. */
export async function startMutatingJson(
  target: string,
  mutate: (text: string) => string,
  code: (code: number) => number = (same) => same,
): Promise<MutatingProxy> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  server.on('connection', (near) => {
    const far = new WebSocket(target, ['monitoring.json'])
    const opened = once(far, 'open')
    far.on('message', (data: Buffer) => near.send(mutate(data.toString('utf8'))))
    far.on('close', (came) => near.close(code(came)))
    near.on('message', (data: Buffer) => void opened.then(() => far.send(data.toString('utf8'))))
    near.on('close', () => far.terminate())
    for (const socket of [near, far]) socket.on('error', () => socket.terminate())
  })
  await once(server, 'listening')
  return {
    address: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/monitor`,
    close() {
      for (const client of server.clients) client.terminate()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
