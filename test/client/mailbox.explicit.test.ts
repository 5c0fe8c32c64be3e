/** Values that the program commits itself. */
import { describe, expect, test } from 'vitest'
import { following, loggedIn, settle } from './fake-producer.ts'
import { noBindingsAnswer, response, value, values } from './wire.ts'

describe('with explicit commits', () => {
  test('the result of a control is committed only if nobody waits for it any more', async () => {
    const { producer, consumer } = await loggedIn({ commit: 'explicit' })
    const abort = new AbortController()
    const result = consumer.execute('x')
    await producer.grant('EXECUTE x', 5)
    const givenUp = consumer.execute('y', {}, { signal: abort.signal })
    await producer.grant('EXECUTE y', 6)
    abort.abort('enough')
    await expect(givenUp).rejects.toBe('enough')
    producer.say(value(5, 1), value(6, 2))
    expect((await result).transaction).toBe(1)
    expect(await producer.rest()).toEqual(['COMMIT 2'])
  })

  test('nothing is committed but by `commit`', async () => {
    const setting = await loggedIn({ commit: 'explicit' })
    const { producer, consumer } = setting
    await following(setting, 'a', 7, () => {})
    producer.say(value(7, 1), value(8, 2), value(8, 3))
    const loop = consumer[Symbol.asyncIterator]()
    expect((await loop.next()).value?.transaction).toBe(2)
    const committing = consumer.commit(2, { through: true })
    await producer.grant('COMMIT 2 through')
    await committing
    await loop.next()
    const result = consumer.execute('x')
    await producer.grant('EXECUTE x', 5, value(5, 4))
    await result
    const closing = consumer.close()
    expect(await producer.rest()).toEqual([])
    await loop.return?.()
    await closing
    expect(await producer.rest()).toEqual([])
  })
})

describe('commit of a sample', () => {
  test('waits for nothing, and goes as one with those of other values while the first is on its way', async () => {
    const { producer, consumer } = await loggedIn({ commit: 'explicit' })
    producer.say(values(7, 1, 2, 3, 4))
    let taken = 0
    for await (const sample of consumer) {
      await sample.commit()
      if (++taken === 4) break
    }
    const { seq } = await producer.expect('COMMIT 1 through')
    expect(await producer.rest()).toEqual([])
    producer.say(response(seq, 0, 0))
    expect(await producer.rest()).toEqual(['COMMIT 4 through'])
  })

  test('is sent again if the connection is lost before it is stored', async () => {
    const { setting, producer, consumer } = await loggedIn({ commit: 'explicit' })
    producer.say(values(7, 1, 2, 3))
    const loop = consumer[Symbol.asyncIterator]()
    const [first, second, third] = [await loop.next(), await loop.next(), await loop.next()]
    third.value?.commit()
    await producer.grant('COMMIT 3')
    second.value?.commit()
    await producer.expect('COMMIT 2')
    const next = await setting.reconnected(producer)
    await next.takeUp(9, {}, values(7, 1, 2))
    await next.grant('COMMIT 2')
    first.value?.commit()
    await next.grant('COMMIT 1 through')
    expect(await next.rest()).toEqual([])
  })

  test('is waited for by `close`, and counts if the loop is left directly after it', async () => {
    for (const commit of ['explicit', 'automatic'] as const) {
      const { producer, consumer } = await loggedIn({ commit })
      producer.say(values(7, 1, 2))
      for await (const sample of consumer) {
        sample.commit()
        break
      }
      const loop = consumer[Symbol.asyncIterator]()
      expect((await loop.next()).value?.transaction).toBe(2)
      await loop.return?.()
      const closing = consumer.close()
      const { seq } = await producer.expect('COMMIT 1 through')
      await settle()
      expect(producer.isClosed).toBe(false)
      producer.say(response(seq, 0, 0))
      await closing
      expect(await producer.rest()).toEqual([])
    }
  })

  test('commits the result of a control, and nothing of a channel that was left', async () => {
    const { producer, consumer } = await loggedIn({ commit: 'explicit' })
    const asking = consumer.execute('x')
    await producer.grant('EXECUTE x', 5)
    producer.say(values(7, 1), value(5, 2))
    const result = await asking
    result.commit()
    await producer.grant('COMMIT 2')
    const { value: sample } = await consumer[Symbol.asyncIterator]().next()
    const switching = consumer.setChannel(12)
    await producer.grant('QUERY producer.bindings channel=12', 900, noBindingsAnswer(900))
    await producer.grant('SET_CHANNEL 12')
    await switching
    sample?.commit()
    expect(await producer.rest()).toEqual([])
  })

  test('of a result commits nothing of another channel, though that was entered before the program had the result', async () => {
    const { producer, consumer } = await loggedIn({ commit: 'explicit' })
    const asking = consumer.execute('x')
    await producer.grant('EXECUTE x', 5)
    const switching = consumer.setChannel(12)
    await producer.grant('QUERY producer.bindings channel=12', 900, noBindingsAnswer(900))
    const { seq } = await producer.expect('SET_CHANNEL 12')
    producer.say(value(5, 2), response(seq, 0, 0), values(7, 1, 2))
    const result = await asking
    result.commit()
    await switching
    expect(await producer.rest()).toEqual([])
  })

  test('does nothing for a value that is not kept', async () => {
    const { producer, consumer } = await loggedIn({ commit: 'explicit' })
    producer.say(values(7, 0))
    const { value: sample } = await consumer[Symbol.asyncIterator]().next()
    sample?.commit()
    expect(await producer.rest()).toEqual([])
  })
})

test('with explicit commits, what nobody follows is left uncommitted, and so is what came before it, when it comes again', async () => {
  const setting = await loggedIn({ commit: 'explicit' })
  const { producer, consumer } = setting
  await following(setting, 'a', 7, () => {})
  producer.say(value(7, 1), value(8, 2))
  void consumer.run()
  await settle()
  const next = await setting.setting.reconnected(producer)
  await next.takeUp(9, { 7: 'a', 8: 'b' }, value(7, 1), value(8, 2))
  expect(await next.rest()).toEqual([])
})

test('with explicit commits, what was committed with `through` is committed again when it comes again', async () => {
  const { setting, producer, consumer } = await loggedIn({ commit: 'explicit' })
  producer.say(values(7, 1, 2, 3))
  const loop = consumer[Symbol.asyncIterator]()
  for (let i = 0; i < 3; i++) await loop.next()
  const committing = consumer.commit(2, { through: true })
  await producer.expect('COMMIT 2 through')
  const second = await setting.reconnected(producer)
  await second.takeUp(9, {})
  // Before the producer has sent anything again: this commits nothing [MON 2].
  await second.grant('COMMIT 2 through')
  await committing
  second.say(values(7, 1))
  await second.grant('COMMIT 1 through')
  second.say(values(7, 2, 3))
  expect(await second.rest()).toEqual(['COMMIT 2 through'])
})
