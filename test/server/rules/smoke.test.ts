import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { command, type } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'

describe('a value and its COMMIT', () => {
  let producer: TestProducer
  beforeEach(async () => {
    producer = await TestProducer.start()
  })
  afterEach(() => producer.stop())

  it('goes from a sensor to a consumer, behind the response to SUBSCRIBE, and is gone when it is committed', async () => {
    const { peer } = await producer.login()
    peer.send(command.collect(1, 'test.a'))
    const { result: id } = await peer.response(1)
    peer.send(command.subscribe(2, id))
    await peer.response(2)
    producer.push.push('test.a', { type: 2, value: 7 }, 1_700_000_000_000_000)
    const value = await peer.until('value')
    expect(value).toMatchObject({ metric: id, time: 1_700_000_000_000_000, type: type.rec })
    peer.send(command.commit(3, value.transaction))
    expect(await peer.response(3)).toMatchObject({ status: 0, result: 0 })
  })
})
