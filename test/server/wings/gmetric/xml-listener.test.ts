import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  type DocumentsListening,
  type DocumentsOptions,
  listenDocuments,
} from '../../../../server/wings/gmetric/xml-listener.ts'
import { eventually } from '../../../support/eventually.ts'

let listening: DocumentsListening
let failures: unknown[]
let sockets: Socket[]

async function start(options: Partial<DocumentsOptions> = {}): Promise<void> {
  const address = { host: '127.0.0.1', port: 0 }
  const document = () => ['<a>', '</a>\n']
  const failed = (error: unknown) => void failures.push(error)
  listening = await listenDocuments({ address, key: 'gmetric.xml', allowed: () => true, document, failed, ...options })
}

beforeEach(() => {
  failures = []
  sockets = []
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  await listening.close()
})

interface Reading {
  text: string
  end: 'end' | 'reset' | undefined
}

function reader(says = ''): Reading & { readonly socket: Socket } {
  const socket = connect(listening.address.port, '127.0.0.1')
  sockets.push(socket)
  const reading: Reading = { text: '', end: undefined }
  socket.write(says)
  socket.on('data', (chunk) => {
    reading.text += chunk
  })
  socket.on('end', () => {
    reading.end ??= 'end'
  })
  socket.on('error', () => {
    reading.end ??= 'reset'
  })
  return Object.assign(reading, { socket })
}

const ended = (reading: Reading) => eventually(() => expect(reading.end).toBeDefined())

describe('a listener for documents', () => {
  it('answers whoever connects with the whole of it and the end, whatever they say', async () => {
    await start()
    for (const says of ['', 'GET / HTTP/1.0\r\n\r\n', 'x'.repeat(200_000)]) {
      const reading = reader(says)
      await ended(reading)
      expect(reading).toMatchObject({ text: '<a></a>\n', end: 'end' })
    }
    expect(listening.counts).toEqual({ served: 3, refused: 0, cutOff: 0 })
  })

  it('resets who may not read it, and counts that', async () => {
    await start({ allowed: (source) => source !== '127.0.0.1' })
    const reading = reader()
    await ended(reading)
    expect(reading).toMatchObject({ text: '', end: 'reset' })
    expect(listening.counts).toEqual({ served: 0, refused: 1, cutOff: 0 })
  })

  it('resets who may not read it any more when it is made', async () => {
    let isAllowed = true
    await start({
      allowed: () => isAllowed,
      *document() {
        yield '<a>'
        isAllowed = false
        yield '</a>'
      },
    })
    const reading = reader()
    await ended(reading)
    expect(reading).toMatchObject({ text: '', end: 'reset' })
    expect(listening.counts).toEqual({ served: 0, refused: 1, cutOff: 0 })
  })

  it('gives nothing where the document cannot be made to its end, and tells of it once', async () => {
    const error = new Error('broken')
    await start({
      *document() {
        yield '<a>'
        throw error
      },
    })
    const readings = [reader(), reader()]
    for (const reading of readings) {
      await ended(reading)
      expect(reading).toMatchObject({ text: '', end: 'reset' })
    }
    expect(failures).toEqual([error])
    expect(listening.counts).toEqual({ served: 0, refused: 0, cutOff: 2 })
  })

  it('makes one document for all who come together, over many turns', async () => {
    let made = 0
    let turns = 0
    const line = `${'x'.repeat(99_999)}\n`
    await start({
      *document() {
        made++
        setImmediate(function count() {
          if (++turns < 5) setImmediate(count)
        })
        for (let i = 0; i < 50; i++) yield line
      },
    })
    const readings = [reader(), reader(), reader()]
    for (const reading of readings) await ended(reading)
    expect(readings.map(({ text, end }) => [text.length, end])).toEqual(Array(3).fill([5_000_000, 'end']))
    expect(made).toBe(1)
    expect(turns).toBe(5)
  })

  it('cuts off who does not read, and serves others meanwhile', async () => {
    await start({ document: () => Array(200).fill('x'.repeat(100_000)), readingMs: 2000 })
    const slow = reader()
    slow.socket.pause()
    const quick = reader()
    await ended(quick)
    expect(quick).toMatchObject({ end: 'end' })
    expect(quick.text).toHaveLength(20_000_000)
    await eventually(() => expect(listening.counts).toEqual({ served: 1, refused: 0, cutOff: 1 }))
    slow.socket.resume()
    await ended(slow)
    expect(slow.text.length).toBeLessThan(20_000_000)
  })

  it('takes so many readers and no more', async () => {
    await start({ document: () => Array(200).fill('x'.repeat(100_000)) })
    const many = Array.from({ length: 65 }, () => {
      const reading = reader()
      reading.socket.pause()
      return reading
    })
    await eventually(() => expect(listening.counts.cutOff).toBe(1))
    for (const { socket } of many) socket.destroy()
    await eventually(async () => {
      const reading = reader()
      await ended(reading)
      expect(reading.end).toBe('end')
    })
  })
})
