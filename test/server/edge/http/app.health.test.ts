import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { command, status } from '../../../support/bytes.ts'
import { TestProducer } from '../../../support/producer.ts'

let producer: TestProducer
let base: string
beforeEach(async () => {
  producer = await TestProducer.start({ config: { listen: { http: { host: '127.0.0.1', port: 0 } } } })
  base = `http://127.0.0.1:${producer.server.http?.port}`
})
afterEach(() => producer.stop())

const get = async (path: string) => {
  const response = await fetch(base + path)
  return { code: response.status, body: await response.json() }
}

describe('/healthz', () => {
  it('says that the process answers', async () => {
    expect(await get('/healthz')).toEqual({ code: 200, body: { status: 'ok' } })
  })
})

describe('/readyz', () => {
  it('says that values are taken in and stored', async () => {
    expect(await get('/readyz')).toEqual({ code: 200, body: { status: 'ready' } })
  })

  it('is 503 while the disk is full, and 200 when there is room again', async () => {
    const seat = await producer.seat()
    producer.store.full = true
    const seq = seat.send((number) => command.defChannel(number))
    await producer.settle()
    expect(await get('/readyz')).toEqual({ code: 503, body: { status: 'not ready', reason: 'storage: full' } })
    expect((await get('/healthz')).code).toBe(200)
    producer.store.full = false
    expect((await get('/readyz')).code).toBe(200)
    expect(await seat.response(seq)).toMatchObject({ status: status.OK })
  })
})

describe('any other path', () => {
  it('is 404', async () => {
    expect((await get('/nothing')).code).toBe(404)
  })
})
