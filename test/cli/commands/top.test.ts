import { describe, expect, test } from 'vitest'
import { type Field, VOID } from '../../../client/index.ts'
import { double, list, rec, string } from '../fake-cli.ts'
import { FakeTop } from '../top/fake-top.ts'

const of = (name: string, host: string, value = double(1)) =>
  rec(string('name', name), string('host', host), { ...value, name: 'value' } as Field)
const started = (...argv: readonly string[]) => new FakeTop().start(argv)
const rowsOf = ({ screen }: FakeTop) => screen.lines.slice(7, -1).filter((line) => line !== '')

describe('top on a terminal', () => {
  test('follows the host and what others send, on a channel that keeps nothing', async () => {
    const { consumer, connected, screen } = await started('--interval', '5')
    expect(connected).toMatchObject({ url: ['tcp://127.0.0.1:7650'], options: { durable: false } })
    expect([...consumer.followed.keys()]).toEqual(
      expect.arrayContaining(['host.cpu.*', 'host.load.*', 'host.mem.*', 'gmetric.*', 'smon.*', 'mono.*', 'qmf.*']),
    )
    expect(consumer.followed.get('host.cpu.*')?.args).toEqual({ interval_ms: 5_000 })
    expect(screen.isOpen).toBe(true)
  })

  test('draws nothing if the terminal is dumb: tables are printed', async () => {
    const top = await new FakeTop().start([], true, 'dumb')
    expect(top.screen.isOpen).toBe(false)
    await top.pass(2_000)
    expect(top.out.length).toBeGreaterThan(0)
    expect(top.out.join('')).not.toContain('\x1b')
  })

  test('shows values as they come, and hosts that appear, a few times a second at most', async () => {
    const top = await started()
    await top.pass(250)
    const before = top.screen.pictures
    for (let i = 0; i < 100; i++) top.consumer.value('gmetric.*', of('gmetric.a', 'n1', double(i)))
    top.consumer.value('gmetric.*', of('gmetric.a', 'n2'))
    await top.pass(249)
    await top.pass(1)
    expect(top.screen.pictures).toBe(before + 1)
    expect(rowsOf(top).map((line) => line.split(/ +/).slice(0, 3))).toEqual([
      ['gmetric.a', 'n1', '99'],
      ['gmetric.a', 'n2', '1'],
    ])
  })

  test('draws nothing if nothing has changed', async () => {
    const top = await started()
    await top.pass(1_000)
    const { pictures } = top.screen
    await top.pass(60_000)
    expect(top.screen.pictures).toBe(pictures)
  })

  test('begins with the values that are there', async () => {
    const top = new FakeTop()
    top.consumer.answers.set('gmetric.*', list([...(of('gmetric.a', 'n1').value as Field[])]))
    const unit = [string('name', 'gmetric.a'), string('unit', 'widgets')]
    top.consumer.answers.set('producer.metrics', list(unit))
    await top.start()
    await top.pass(250)
    expect(rowsOf(top)[0]).toMatch(/^gmetric\.a +n1 +1 widgets +-$/)
  })

  test('of another producer shows the host of that one', async () => {
    const { consumer } = await started('producer=east/rack1')
    expect(consumer.followed.get('gmetric.*')?.args).toMatchObject({ producer: 'east/rack1' })
    expect(consumer.followed.get('host.cpu.*')?.args).toMatchObject({ producer: 'east/rack1' })
    expect(consumer.followed.get('producer.stats')?.args).toMatchObject({ producer: 'east/rack1' })
  })

  test('of several producers has a column for them, and the host of the server', async () => {
    const top = await started('producer=*')
    expect(top.consumer.followed.get('gmetric.*')?.args).toMatchObject({ producer: '*' })
    expect(top.consumer.followed.get('host.cpu.*')?.args).not.toHaveProperty('producer')
    for (const producer of ['main', 'rack1']) {
      const fields = [string('name', 'gmetric.a'), string('producer', producer), string('host', 'n1')]
      top.consumer.value('gmetric.*', rec(...fields, { ...double(1), name: 'value' } as Field))
    }
    await top.pass(250)
    expect(top.screen.lines[6]).toMatch(/^METRIC \^ +PRODUCER +HOST /)
    expect(rowsOf(top).map((line) => line.split(/ +/).slice(0, 3))).toEqual([
      ['gmetric.a', 'main', 'n1'],
      ['gmetric.a', 'rack1', 'n1'],
    ])
    top.screen.type('/rack')
    await top.pass(250)
    expect(rowsOf(top)).toHaveLength(1)
  })

  test('a row that is gone is dropped after a while', async () => {
    const top = await started()
    top.consumer.value('gmetric.*', of('gmetric.a', 'n1'))
    top.consumer.value('gmetric.*', of('gmetric.b', 'n1'))
    top.consumer.value('gmetric.*', of('gmetric.a', 'n1', VOID as never))
    await top.pass(1_000)
    expect(rowsOf(top).map((line) => /gone$/.test(line))).toEqual([true, false])
    await top.pass(10_000)
    await top.pass(1_000)
    expect(rowsOf(top)).toHaveLength(1)
  })

  test('sortKeys, filters and helps by keys', async () => {
    const top = await started()
    for (const [name, value] of [
      ['a', 1],
      ['b', 2],
      ['ab', 3],
    ] as const) {
      top.consumer.value('gmetric.*', of(`gmetric.${name}`, 'n1', double(value)))
    }
    const names = async (keys: string) => {
      top.screen.type(keys)
      await top.pass(250)
      return rowsOf(top).map((line) => line.split(' ')[0])
    }
    expect(await names('3')).toEqual(['gmetric.ab', 'gmetric.b', 'gmetric.a'])
    expect(await names('/b')).toEqual(['gmetric.ab', 'gmetric.b'])
    expect(top.screen.lines.at(-1)).toBe('/b_')
    expect(await names('\r')).toEqual(['gmetric.ab', 'gmetric.b'])
    expect(await names('\x1b')).toEqual(['gmetric.ab', 'gmetric.b', 'gmetric.a'])
    await names('?')
    expect(top.screen.lines[6]).toBe('KEYS')
    expect(await names('x')).toHaveLength(3)
  })

  test('pauses and resumes', async () => {
    const top = await started()
    top.consumer.value('gmetric.*', of('gmetric.a', 'n1', double(1)))
    top.screen.type(' ')
    top.consumer.value('gmetric.*', of('gmetric.a', 'n1', double(2)))
    await top.pass(5_000)
    expect(rowsOf(top)[0]).toMatch(/ 1 +now$/)
    top.screen.type(' ')
    await top.pass(250)
    expect(rowsOf(top)[0]).toMatch(/ 2 +5 s$/)
  })

  test('a resize draws everything anew', async () => {
    const top = await started()
    await top.pass(1_000)
    top.screen.resize(60, 20)
    await top.pass(250)
    expect(top.screen.lines).toHaveLength(20)
    expect(Math.max(...top.screen.lines.map((line) => line.length))).toBeLessThanOrEqual(60)
    const { pictures } = top.screen
    top.screen.type('\x0c')
    await top.pass(250)
    expect(top.screen.pictures).toBe(pictures + 1)
  })

  test('reports a lost connection, and continues with the current values', async () => {
    const top = await started()
    top.consumer.value('gmetric.*', of('gmetric.a', 'n1'))
    top.consumer.emit('disconnected', new Error('gone'))
    await top.pass(3_100)
    expect(top.screen.lines.at(-1)).toBe('no connection to tcp://127.0.0.1:7650 for 3 s, reconnecting')
    top.consumer.answers.set('gmetric.*', list([...(of('gmetric.b', 'n1').value as Field[])]))
    top.consumer.emit('connected', { channel: 9 })
    await top.settle()
    await top.pass(250)
    expect(top.screen.lines.at(-1)).toMatch(/^q quit/)
    expect(rowsOf(top).map((line) => line.replace(/ .* /, ' '))).toEqual(['gmetric.a gone', 'gmetric.b -'])
    expect(top.err).toEqual([])
  })

  test('notices of the producer appear in the last line', async () => {
    const top = await started()
    top.consumer.emit('notice', { detail: 'storage\x1b full', code: 3 })
    await top.pass(250)
    expect(top.screen.lines.at(-1)).toBe('storage\\x1b full')
    await top.pass(10_000)
    expect(top.screen.lines.at(-1)).toMatch(/^q quit/)
    expect(top.err).toEqual([])
  })

  test.each<[string, (top: FakeTop) => void]>([
    ['q', ({ screen }) => screen.type('q')],
    ['Ctrl-C', ({ screen }) => screen.type('\x03')],
    ['SIGTERM', (top) => top.interrupt()],
    ['the end of the terminal', ({ screen }) => screen.end()],
  ])('%s ends it, with the terminal as it was', async (_, end) => {
    const top = await started()
    end(top)
    await top.ended
    expect({ open: top.screen.isOpen, closed: top.consumer.isClosed, timers: top.clock.timers }).toEqual({
      open: false,
      closed: true,
      timers: 0,
    })
  })

  test('so does the end of the connection for good', async () => {
    const top = await started()
    top.consumer.fail(new Error('the password was changed'))
    await expect(top.ended).rejects.toThrow('the password was changed')
    expect({ open: top.screen.isOpen, timers: top.clock.timers }).toEqual({ open: false, timers: 0 })
  })

  test('a metric of the host that may not be read is left out; one that was named is an error', async () => {
    const top = new FakeTop()
    top.consumer.refused.add('producer.stats')
    await top.start()
    await top.pass(250)
    expect(top.screen.isOpen).toBe(true)
    const named = new FakeTop()
    named.consumer.refused.add('host.bogus')
    await named.start(['host.bogus'])
    await expect(named.ended).rejects.toThrow('no metric host.bogus')
    expect(named.screen.isOpen).toBe(false)
  })
})

describe('top into a pipe', () => {
  test('prints the given number of tables, the first after a second, then at intervals', async () => {
    const top = await new FakeTop().start(['gmetric.a', 'host=n*', '--count', '2', '--interval', '10'], false)
    expect(top.consumer.followed.get('gmetric.a')?.args).toEqual({ host: 'n*', interval_ms: 10_000 })
    top.consumer.value('gmetric.a', rec(string('host', 'n1'), { ...double(4), name: 'value' } as Field))
    await top.pass(999)
    expect(top.out).toEqual([])
    await top.pass(1)
    expect(top.out.at(-1)).toMatch(/^gmetric\.a +n1 +4 +1 s$/)
    await top.pass(9_999)
    const { length } = top.out
    await top.pass(1)
    await top.ended
    expect(top.out).toHaveLength(2 * length + 1)
    expect(top.screen.isOpen).toBe(false)
  })

  test('prints an object per row', async () => {
    const top = await started('--json', '--count', '1')
    top.consumer.value('gmetric.*', of('gmetric.a', 'n1'))
    top.consumer.value('gmetric.*', of('gmetric.b', 'n1'))
    top.consumer.value('gmetric.*', of('gmetric.b', 'n1', VOID as never))
    await top.pass(1_000)
    await top.ended
    expect(top.out.map((line) => JSON.parse(line))).toEqual([
      { metric: 'gmetric.a', host: 'n1', value: 1, unit: '', time: 7 },
    ])
  })

  test('prints nothing of what is refused', async () => {
    const top = new FakeTop()
    top.consumer.refused.add('host.bogus')
    await top.start(['host.bogus', '--count', '1'], false)
    await expect(top.ended).rejects.toThrow('no metric host.bogus')
    await top.pass(2_000)
    expect({ out: top.out, timers: top.clock.timers }).toEqual({ out: [], timers: 0 })
  })

  test('Ctrl-C ends it at once', async () => {
    const top = await started('--plain')
    await top.pass(1_000)
    top.interrupt()
    await top.ended
    expect(top.clock.timers).toBe(0)
  })

  test.each([
    ['--interval', '0'],
    ['--interval', 'x'],
    ['--count', '0'],
  ])('%s %s is wrong usage', async (...argv) => {
    const top = await started(...argv)
    await expect(top.ended).rejects.toThrow(/Expected a /)
    expect(top.connected).toBeUndefined()
  })
})
