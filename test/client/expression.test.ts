/** What an expression comes to, answer by answer, and at a server. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ExpressionOptions, readExpression } from '../../client/expression.ts'
import { type Consumer, connect, ExpressionError, type LossRange, publish } from '../../client/index.ts'
import type { Arguments, PlainRecord } from '../../client/values.ts'
import { tokenOfPublisher } from '../rig/prometheus-stack.ts'
import { eventually } from '../support/eventually.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

const SUMMARY = { type: 'matrix', series: 2, samples: 9, took: 1_500, warnings: ['w'], infos: ['i'] }
const ABOUT = { ...SUMMARY, text: '' }

async function read(pages: readonly (readonly PlainRecord[])[], options: ExpressionOptions = {}) {
  const asked: Arguments[] = []
  const pageOf = async (args: Arguments) => {
    asked.push(args)
    return pages[asked.length - 1] as readonly PlainRecord[]
  }
  const result = await readExpression(pageOf, 'a', options)
  return { asked, result }
}

const piece = (host: string, ...times: readonly number[]): PlainRecord => {
  return { name: 'a', labels: { host }, times, values: times.map((time) => 10 * time) }
}
const more = (after: string): PlainRecord => ({ more: true, after })

describe('an answer', () => {
  it('is asked for until it is there, and its series come whole', async () => {
    const pages = [[more('x')], [SUMMARY, piece('h1', 1, 2), more('y')], [piece('h1', 3), piece('h2', 1)]]
    const { asked, result } = await read(pages, { since: 5, until: new Date(7), step: 60_000_000, limit: 10 })
    expect(asked).toEqual([
      { expr: 'a', from: 5, to: 7000, step_ms: 60_000, limit: 10 },
      { after: 'x' },
      { after: 'y' },
    ])
    expect(result).toEqual({
      ...ABOUT,
      series: [
        { name: 'a', labels: { host: 'h1' }, times: [1, 2, 3], values: [10, 20, 30] },
        { name: 'a', labels: { host: 'h2' }, times: [1], values: [10] },
      ],
    })
  })

  it('may have losses, which are asked for if somebody wants them', async () => {
    const losses: LossRange[] = []
    const record = { tenant: 't', metric: 'a.b', from: 7, to: 8, lost: 9, reason: 'overflow' }
    const { asked, result } = await read([[SUMMARY, record, piece('h1', 1)]], { onLoss: (loss) => losses.push(loss) })
    expect(asked).toEqual([{ expr: 'a', with_losses: true }])
    expect(losses).toEqual([{ tenant: 't', metric: 'a.b', from: 7, to: 8, count: 9, reason: 'overflow' }])
    expect(result.series).toHaveLength(1)
  })

  it('may be a text, or nothing', async () => {
    const { asked, result } = await read([[{ ...SUMMARY, type: 'string', text: 'x' }]], { at: new Date(1) })
    expect(asked).toEqual([{ expr: 'a', at: 1000 }])
    expect(result).toMatchObject({ type: 'string', text: 'x', series: [] })
    expect((await read([[SUMMARY]])).result).toEqual({ ...ABOUT, series: [] })
  })

  it('may be an error, with its place or without', async () => {
    const error = { error_type: 'bad_data', error: '1:2: wrong' }
    await expect(read([[{ ...error, error_from: 1, error_to: 2 }]])).rejects.toEqual(
      new ExpressionError('bad_data', '1:2: wrong', { from: 1, to: 2 }),
    )
    await expect(read([[more('x')], [error]])).rejects.toMatchObject({ type: 'bad_data', position: undefined })
  })

  it('needs times', async () => {
    await expect(read([], { at: -1 })).rejects.toThrow('`at`: -1 is no time')
  })
})

describe('a server', () => {
  const FIRST = (Math.floor(Date.now() / 60_000) - 10) * 60_000_000
  const COUNT = 2_500
  let server: ServerProcess
  let consumer: Consumer
  beforeAll(async () => {
    server = new ServerProcess('[history]\nkeep = "30d"\nresolution = "0"\nmetrics = ["otlp.*"]\n')
    await server.start()
    const seat = await server.seat()
    const token = await tokenOfPublisher(seat, 'otlp.*')
    seat.peer.destroy()
    consumer = await connect(`tcp://127.0.0.1:${server.tcpPort}`, { identity: 'admin', password: PASSWORD })
    const values = ['a', 'b'].map((job, value) => ({ name: 'done', value, labels: { job }, time: FIRST }))
    await publish(`http://127.0.0.1:${server.httpPort}`, { token }, values)
  })
  afterAll(async () => {
    await consumer?.close()
    await server.remove()
  })

  it('answers at a time, and over a range in more records than one', async () => {
    const at = FIRST + 1_000_000
    await eventually(async () => {
      expect((await consumer.evaluate('otlp_done + 1', { at })).series).toEqual([
        { name: '', labels: { job: 'a' }, times: [at], values: [1] },
        { name: '', labels: { job: 'b' }, times: [at], values: [2] },
      ])
    })
    const range = { since: FIRST, until: FIRST + (COUNT - 1) * 100_000, step: 100_000 }
    const { type, series, samples } = await consumer.evaluate('otlp_done', range)
    expect([type, samples]).toEqual(['matrix', 2])
    expect(series.map(({ times, values }) => [times.length, values.length])).toEqual([
      [COUNT, COUNT],
      [COUNT, COUNT],
    ])
  })

  it('says what is wrong, and whether it remembers at all', async () => {
    await expect(consumer.evaluate('sum(')).rejects.toMatchObject({ name: 'ExpressionError', type: 'bad_data' })
    const forgetful = new ServerProcess('[history]\nkeep = "0"\n')
    await forgetful.start()
    const asking = await connect(`tcp://127.0.0.1:${forgetful.tcpPort}`, { identity: 'admin', password: PASSWORD })
    await expect(asking.evaluate('1')).rejects.toMatchObject({ status: 'UNSUPPORTED' })
    await asking.close()
    await forgetful.remove()
  })
})
