import { describe, expect, test } from 'vitest'
import type { Sample } from '../../client/index.ts'
import { following, loggedIn, settle } from './fake-producer.ts'
import { gap, response, value, values } from './wire.ts'

const transactionsOf = (samples: readonly Sample[]) => samples.map(({ transaction }) => transaction)

/** Something that a handler waits for. */
function gate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}

describe('the loop', () => {
  test('is given the values in their order, each committed when the next is asked for', async () => {
    const { producer, consumer } = await loggedIn()
    producer.say(values(7, 1, 2))
    const loop = consumer[Symbol.asyncIterator]()
    expect((await loop.next()).value).toMatchObject({ id: 7, transaction: 1, name: '', plain: 0 })
    expect(await producer.rest()).toEqual([])
    expect((await loop.next()).value?.transaction).toBe(2)
    expect(await producer.rest()).toEqual(['COMMIT 1 through'])
  })

  test('waits for what is still to come', async () => {
    const { producer, consumer } = await loggedIn()
    const next = consumer[Symbol.asyncIterator]().next()
    await settle()
    producer.say(value(7, 1, 42))
    expect((await next).value?.plain).toBe(42)
  })

  test('commits in groups: while one COMMIT is on its way, the rest waits for its response', async () => {
    const { producer, consumer } = await loggedIn()
    producer.say(values(7, 1, 2, 3, 4, 5))
    const loop = consumer[Symbol.asyncIterator]()
    for (let i = 0; i < 5; i++) await loop.next()
    const { seq } = await producer.expect('COMMIT 1 through')
    expect(await producer.rest()).toEqual([])
    producer.say(response(seq, 0, 0))
    expect(await producer.rest()).toEqual(['COMMIT 4 through'])
  })

  test.each([
    ['break', false],
    ['an error', true],
  ])('that ends by %s leaves the value uncommitted, and the next loop has it again', async (_, isError) => {
    const { producer, consumer } = await loggedIn()
    producer.say(values(7, 1, 2, 3))
    const loop = async () => {
      for await (const sample of consumer) {
        if (sample.transaction === 1) continue
        if (isError) throw new Error('cannot')
        break
      }
    }
    await loop().catch(({ message }) => expect(message).toBe('cannot'))
    await producer.grant('COMMIT 1 through')
    expect(await producer.rest()).toEqual([])
    const again: Sample[] = []
    for await (const sample of consumer) {
      again.push(sample)
      if (again.length === 2) break
    }
    expect(transactionsOf(again)).toEqual([2, 3])
    expect(await producer.rest()).toEqual(['COMMIT 2 through'])
  })

  test('that ends by `break` in a block with `await using` commits what was handled, and closes the consumer', async () => {
    const { producer, consumer: opened } = await loggedIn()
    producer.say(values(7, 1, 2, 3))
    const block = async () => {
      await using consumer = opened
      for await (const { transaction } of consumer) if (transaction === 2) break
    }
    const done = block()
    await producer.grant('COMMIT 1 through')
    await done
    expect(await producer.rest()).toEqual([])
    expect(producer.isClosed).toBe(true)
    await expect(opened.nop()).rejects.toMatchObject({ code: 'CLOSED' })
  })

  test('ends with the reason of its signal while it waits; what it had was handled, and another may follow', async () => {
    const { producer, consumer } = await loggedIn()
    const abort = new AbortController()
    const reason = new Error('enough')
    const taken: number[] = []
    const loop = async () => {
      for await (const { transaction } of consumer.samples({ signal: abort.signal })) taken.push(transaction)
    }
    const looping = loop().catch((error: unknown) => error)
    producer.say(values(7, 1, 2))
    await producer.grant('COMMIT 1 through')
    await producer.grant('COMMIT 2 through')
    abort.abort(reason)
    expect([await looping, taken]).toEqual([reason, [1, 2]])
    producer.say(value(7, 3))
    expect((await consumer[Symbol.asyncIterator]().next()).value?.transaction).toBe(3)
  })

  test('whose signal is aborted in its body takes no further value, though some wait', async () => {
    const { producer, consumer } = await loggedIn()
    const abort = new AbortController()
    producer.say(values(7, 1, 2))
    const loop = async () => {
      for await (const sample of consumer.samples({ signal: abort.signal })) abort.abort(sample.transaction)
    }
    await expect(loop()).rejects.toBe(1)
    await producer.grant('COMMIT 1 through')
    expect((await consumer[Symbol.asyncIterator]().next()).value?.transaction).toBe(2)
  })

  test('is one at a time, and another may follow', async () => {
    const { consumer } = await loggedIn()
    const loop = consumer[Symbol.asyncIterator]()
    expect(() => consumer[Symbol.asyncIterator]()).toThrow(/already being read/)
    await expect(consumer.run()).rejects.toThrow(/already being read/)
    await loop.return?.()
    expect(() => consumer[Symbol.asyncIterator]()).not.toThrow()
  })

  test('of ten thousand values that wait gives them all', async () => {
    const { producer, consumer } = await loggedIn()
    const all = Array.from({ length: 10_000 }, (_, i) => i + 1)
    producer.say(values(7, ...all))
    const taken: Sample[] = []
    for await (const sample of consumer) if (taken.push(sample) === all.length) break
    expect(transactionsOf(taken)).toEqual(all)
  })
})

describe('handlers', () => {
  test('have the values of their metric, the loop all others, in one order', async () => {
    const setting = await loggedIn()
    const { producer, consumer } = setting
    const seen: string[] = []
    await following(setting, 'a', 7, ({ name, transaction }) => seen.push(`${name} ${transaction} handled`))
    await following(setting, 'b', 8)
    producer.say(value(8, 1), value(7, 2), value(9, 3), value(7, 4), value(8, 5))
    for await (const { name, transaction } of consumer) {
      seen.push(`${name} ${transaction}`)
      if (transaction === 5) break
    }
    expect(seen).toEqual(['b 1', 'a 2 handled', ' 3', 'a 4 handled', 'b 5'])
  })

  test('end with a signal between two values: the one that is being handled is finished and committed', async () => {
    const setting = await loggedIn()
    const { producer, consumer } = setting
    const { opened, open } = gate()
    const abort = new AbortController()
    const handled: number[] = []
    await following(setting, 'a', 7, async ({ transaction }) => {
      await opened
      handled.push(transaction)
    })
    producer.say(values(7, 1, 2))
    const running = consumer.run({ signal: abort.signal }).catch((error: unknown) => error)
    abort.abort('enough')
    open()
    expect([await running, handled]).toEqual(['enough', [1]])
    expect(await producer.rest()).toEqual(['COMMIT 1 through'])
  })

  test('are called only while somebody reads', async () => {
    const setting = await loggedIn()
    let handled = 0
    await following(setting, 'a', 7, () => handled++)
    setting.producer.say(value(7, 1))
    await settle()
    expect(handled).toBe(0)
    void setting.consumer.run()
    await settle()
    expect(handled).toBe(1)
  })

  test('that are slow are awaited: the next value and the COMMIT come afterwards', async () => {
    const setting = await loggedIn()
    const { producer, consumer } = setting
    const { opened, open } = gate()
    const seen: number[] = []
    await following(setting, 'a', 7, async ({ transaction }) => {
      seen.push(transaction)
      await opened
    })
    producer.say(values(7, 1, 2))
    void consumer.run()
    expect(await producer.rest()).toEqual([])
    expect(seen).toEqual([1])
    open()
    expect(await producer.rest()).toEqual(['COMMIT 1 through'])
    expect(seen).toEqual([1, 2])
  })

  test('that are quick are committed together', async () => {
    const setting = await loggedIn()
    await following(setting, 'a', 7, () => {})
    setting.producer.say(values(7, 1, 2, 3))
    void setting.consumer.run()
    expect(await setting.producer.rest()).toEqual(['COMMIT 3 through'])
  })

  test.each([
    [
      'at once',
      () => {
        throw new Error('cannot')
      },
    ],
    ['later', () => Promise.reject(new Error('cannot'))],
  ])('that fail %s reject run(); the value is not committed and comes again', async (_, fail) => {
    const setting = await loggedIn()
    const { producer, consumer } = setting
    const seen: number[] = []
    await following(setting, 'a', 7, ({ transaction }) => {
      seen.push(transaction)
      return transaction === 2 && seen.length === 2 ? fail() : undefined
    })
    producer.say(values(7, 1, 2, 3))
    await expect(consumer.run()).rejects.toThrow('cannot')
    expect(seen).toEqual([1, 2])
    expect(await producer.rest()).not.toContain('COMMIT 2 through')
    void consumer.run()
    await settle()
    expect(seen).toEqual([1, 2, 2, 3])
  })
})

describe('run', () => {
  test('skips what nobody follows: it stays uncommitted, and what comes after it is committed one by one', async () => {
    const setting = await loggedIn()
    const { producer, consumer } = setting
    await following(setting, 'a', 7, () => {})
    producer.say(value(7, 1), value(8, 2), value(7, 3), value(7, 4))
    void consumer.run()
    expect(await producer.rest()).toEqual(['COMMIT 3', 'COMMIT 4', 'COMMIT 1 through'])
  })

  test('uses `through` again when the consumer itself has committed what was skipped', async () => {
    const setting = await loggedIn()
    const { producer, consumer } = setting
    await following(setting, 'a', 7, () => {})
    producer.say(value(8, 1), value(7, 2))
    void consumer.run()
    await producer.grant('COMMIT 2')
    const committing = consumer.commit(1, { through: true })
    await producer.grant('COMMIT 1 through')
    await committing
    producer.say(value(7, 3))
    expect(await producer.rest()).toEqual(['COMMIT 3 through'])
  })

  test('ends when the consumer is closed', async () => {
    const { consumer } = await loggedIn()
    const running = consumer.run()
    await consumer.close()
    await running
  })
})

describe('commit', () => {
  test('of the value that the loop has, settles when that is stored, and is no command of its own', async () => {
    const { producer, consumer } = await loggedIn()
    producer.say(values(7, 1, 2))
    const loop = consumer[Symbol.asyncIterator]()
    await loop.next()
    let isStored = false
    const committing = consumer.commit(1).then(() => {
      isStored = true
    })
    const { seq } = await producer.expect('COMMIT 1 through')
    await settle()
    expect(isStored).toBe(false)
    producer.say(response(seq, 0, 0))
    await committing
    await loop.next()
    expect(await producer.rest()).toEqual([])
  })

  test('counts also if the loop is left directly after it', async () => {
    const { producer, consumer } = await loggedIn()
    producer.say(values(7, 1, 2))
    for await (const { transaction } of consumer) {
      void consumer.commit(transaction)
      break
    }
    await producer.expect('COMMIT 1 through')
    expect((await consumer[Symbol.asyncIterator]().next()).value?.transaction).toBe(2)
  })
})

describe('a GAP', () => {
  test('is reported in its place between the values, and committed like one', async () => {
    const setting = await loggedIn()
    const { producer, consumer } = setting
    const seen: string[] = []
    await following(setting, 'a', 7, ({ transaction }) => seen.push(`value ${transaction}`))
    consumer.on('gap', ({ transaction, id, metric, count, reason }) =>
      seen.push(`gap ${transaction}: ${count} of ${metric} (${id}), ${reason}`),
    )
    producer.say(value(7, 1), gap(2, 7), value(7, 3), gap(4, 7))
    expect(seen).toEqual([])
    void consumer.run()
    expect(await producer.rest()).toEqual(['COMMIT 4 through'])
    expect(seen).toEqual(['value 1', 'gap 2: 5 of a (7), overflow', 'value 3', 'gap 4: 5 of a (7), overflow'])
  })

  test('whose listener fails rejects the reader, is not committed, and is reported again', async () => {
    const { producer, consumer } = await loggedIn()
    producer.say(value(7, 1), gap(2, 7))
    let reported = 0
    const off = consumer.on('gap', () => {
      if (++reported === 1) throw new Error('cannot')
    })
    const loop = consumer[Symbol.asyncIterator]()
    await loop.next()
    await expect(loop.next()).rejects.toThrow('cannot')
    await producer.grant('COMMIT 1 through')
    void consumer.run()
    expect(await producer.rest()).toEqual(['COMMIT 2 through'])
    expect(reported).toBe(2)
    off()
  })
})

describe('close', () => {
  test('waits for the handler, one second at the most, and commits what was handled', async () => {
    const setting = await loggedIn()
    const { producer, consumer, clock } = setting
    const { opened, open } = gate()
    await following(setting, 'a', 7, ({ transaction }) => (transaction === 2 ? opened : undefined))
    producer.say(values(7, 1, 2, 3))
    const running = consumer.run()
    const closing = consumer.close()
    clock.advance(999)
    await settle()
    expect(producer.isClosed).toBe(false)
    open()
    await producer.grant('COMMIT 2 through')
    await closing
    await running
    expect(producer.isClosed).toBe(true)
    expect(clock.timers).toBe(0)
  })

  test('continues without a handler that takes longer, and its value is not committed', async () => {
    const setting = await loggedIn()
    const { producer, consumer, clock } = setting
    const { opened, open } = gate()
    await following(setting, 'a', 7, ({ transaction }) => (transaction === 2 ? opened : undefined))
    producer.say(values(7, 1, 2))
    const running = consumer.run()
    const closing = consumer.close()
    clock.advance(1000)
    await producer.grant('COMMIT 1 through')
    await closing
    open()
    await running
    expect(await producer.rest()).toEqual([])
    expect(producer.isClosed).toBe(true)
    expect(clock.timers).toBe(0)
  })
})
