import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { duplexPair } from 'node:stream'
import { afterEach, describe, expect, test } from 'vitest'
import { WebSocketServer } from 'ws'
import { dial } from '../../../client/dial/dial.ts'
import { streamTransport } from '../../../client/dial/stream.ts'

const never = new AbortController().signal
const closing: { close(): unknown }[] = []
afterEach(() => {
  for (const server of closing.splice(0)) server.close()
})

async function listen(onSocket: (socket: Socket) => void): Promise<number> {
  const server: Server = createServer(onSocket).listen(0, '127.0.0.1')
  closing.push(server)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

describe('tcp', () => {
  test('carries bytes both ways, none of them lost before anybody listens', async () => {
    const port = await listen((socket) => {
      socket.write('hello ')
      socket.on('data', (data) => socket.end(data))
    })
    const transport = await dial(`tcp://127.0.0.1:${port}`, never)
    expect(transport).toMatchObject({ loopback: true, encrypted: false })
    const heard: Uint8Array[] = []
    await new Promise<void>((closed) => {
      transport.open({ data: (bytes) => heard.push(new Uint8Array(bytes)), closed: () => closed() })
      transport.send(Buffer.from('world'))
    })
    expect(Buffer.concat(heard).toString()).toBe('hello world')
  })

  test('reports why nothing answers, with the error of the system', async () => {
    const port = await listen(() => {})
    await new Promise((resolve) => (closing.pop() as Server).close(resolve))
    await expect(dial(`tcp://127.0.0.1:${port}`, never)).rejects.toMatchObject({
      code: 'UNREACHABLE',
      message: expect.stringContaining(`127.0.0.1:${port}`),
      cause: { code: 'ECONNREFUSED' },
    })
  })

  test('is ended with what to do if an HTTP server waits for a request there', async () => {
    const server = createHttpServer((_, response) => response.writeHead(404).end()).listen(0, '127.0.0.1')
    closing.push(server)
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const transport = await dial(`tcp://127.0.0.1:${port}`, never)
    const cause = await new Promise<Error | undefined>((closed) => transport.open({ data() {}, closed }))
    expect(cause).toMatchObject({
      code: 'PROTOCOL',
      message: `127.0.0.1:${port} speaks HTTP: use ws://127.0.0.1:${port}/monitor, or the port of \`listen.tcp\``,
    })
  })

  test('goes on if what is silent there is no HTTP server', async () => {
    const asked: Socket[] = []
    const port = await listen((socket) => {
      socket.on('error', () => {})
      if (asked.push(socket) === 1) return
      // The second connection is the question.
      socket.on('data', () => {
        socket.destroy()
        asked[0]?.end('late')
      })
    })
    const transport = await dial(`tcp://127.0.0.1:${port}`, never)
    const heard: Uint8Array[] = []
    await new Promise<void>((closed) => {
      transport.open({
        data: (bytes) => heard.push(new Uint8Array(bytes)),
        closed(cause) {
          expect(cause).toBeUndefined()
          closed()
        },
      })
    })
    expect(Buffer.concat(heard).toString()).toBe('late')
  })

  test('can be given up', async () => {
    const port = await listen(() => {})
    const abort = new AbortController()
    const dialling = dial(`tcp://127.0.0.1:${port}`, abort.signal)
    abort.abort(new Error('given up'))
    await expect(dialling).rejects.toThrow('given up')
  })
})

describe('a stream', () => {
  const facts = { encrypted: false, loopback: true }

  test('delivers nothing while it is paused', async () => {
    const [ours, theirs] = duplexPair()
    const transport = streamTransport(ours, facts)
    let heard = ''
    transport.open({ data: (bytes) => (heard += Buffer.from(bytes)), closed: () => {} })
    transport.pause()
    theirs.write('a')
    await new Promise(setImmediate)
    expect(heard).toBe('')
    transport.resume()
    await once(ours, 'data')
    expect(heard).toBe('a')
  })

  test('that breaks says why, once', async () => {
    const [ours] = duplexPair()
    const causes: unknown[] = []
    streamTransport(ours, facts).open({ data: () => {}, closed: (cause) => causes.push(cause) })
    ours.destroy(new Error('broken'))
    await new Promise((resolve) => ours.once('close', resolve))
    expect(causes).toEqual([expect.objectContaining({ message: 'broken' })])
  })

  test('that is closed sends first what was given to it', async () => {
    const [ours, theirs] = duplexPair()
    const transport = streamTransport(ours, facts)
    transport.open({ data: () => {}, closed: () => {} })
    transport.send(Buffer.from('last words'))
    transport.close()
    const [heard] = await once(theirs, 'data')
    expect(String(heard)).toBe('last words')
  })
})

describe('websocket', () => {
  async function serve(protocol: string | false) {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => protocol })
    closing.push(server)
    await once(server, 'listening')
    return { server, url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/monitor` }
  }

  test('carries bytes both ways, none of them lost before anybody listens', async () => {
    const { server, url } = await serve('monitoring.xdr')
    server.on('connection', (socket) => {
      socket.send(Buffer.from('hello '))
      socket.on('message', (data) => {
        socket.send(data)
        socket.close()
      })
    })
    const transport = await dial(url, never)
    expect(transport).toMatchObject({ loopback: true, encrypted: false })
    await new Promise(setImmediate)
    const heard: Uint8Array[] = []
    await new Promise<void>((closed) => {
      transport.open({ data: (bytes) => heard.push(bytes), closed: () => closed() })
      transport.send(Buffer.from('world'))
    })
    expect(Buffer.concat(heard).toString()).toBe('hello world')
  })

  test('is refused by a server that does not speak the subprotocol', async () => {
    const { url } = await serve(false)
    await expect(dial(url, never)).rejects.toMatchObject({ code: 'UNREACHABLE' })
  })

  test('text where bytes belong ends the connection', async () => {
    const { server, url } = await serve('monitoring.xdr')
    server.on('connection', (socket) => socket.send('{}'))
    const transport = await dial(url, never)
    const heard: unknown[] = []
    await new Promise<void>((closed) => transport.open({ data: (b) => heard.push(b), closed: () => closed() }))
    expect(heard).toEqual([])
  })
})

test('an unknown scheme is refused', async () => {
  await expect(dial('http://127.0.0.1:7651', never)).rejects.toMatchObject({
    code: 'BAD_URL',
    message: 'cannot dial http:// here: use one of tcp://, tls://, ws://, wss://',
  })
})
