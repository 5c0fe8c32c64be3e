/** `cinnabar channels delete` and `purge`, and the other commands whose work cannot be undone: whose values go, and who has said so. */
import { describe, expect, test } from 'vitest'
import type { Field } from '../../../client/index.ts'
import { list, rec, runCli, type Script, string, uint32, uint64 } from '../fake-cli.ts'

interface Shown {
  readonly identity: string
  readonly state: string
  readonly queued: number
}

function channel(id: number, { identity = 'alice', state = 'connected', queued = 0 }: Partial<Shown> = {}): Field[] {
  return [
    uint32('channel', id),
    string('identity', identity),
    string('state', state),
    uint64('queued', BigInt(queued)),
    uint64('queued_bytes', BigInt(queued * 1000)),
    uint64('in_flight', queued > 0 ? 1n : 0n),
  ]
}

const done = rec(string('outcome', 'ok'), string('detail', '5 values dropped'))

/** Everything is there for an admin to see; the command itself is `alice`, on channel 9. */
const NAMED: Readonly<Record<string, readonly (readonly Field[])[]>> = {
  '9': [channel(9)],
  '12': [channel(12, { identity: 'acme/bob', queued: 416_968 })],
  billing: [channel(7, { queued: 4 }), channel(70, { identity: 'acme/bob', queued: 100 })],
  warehouse: [channel(1301, { identity: 'acme/bob', queued: 416_968 })],
  twice: [channel(20, { identity: 'acme/bob' }), channel(21, { identity: 'acme/eve' })],
  'a/b': [channel(30)],
}
const known: Script = ({ name, of, args }) => {
  if (of === 'channel.purge' || of === 'channel.delete') return { followedBy: [{ answer: done }] }
  if (name === 'QUERY') return { followedBy: [{ answer: list(...(NAMED[String(args['channel'])] ?? [])) }] }
  return {}
}
const changes = (producer: Awaited<ReturnType<typeof runCli>>['producer']) =>
  producer.asked.filter(({ name }) => name !== 'QUERY')

describe('channels delete and purge', () => {
  test('delete those that are named, by id or name', async () => {
    const { code, out, err, producer } = await runCli(['channels', 'delete', '12', 'billing', '--yes'], known)
    const notes = ['channel 12 deleted', 'channel 7 (billing) deleted']
    expect({ code, out, err }).toEqual({ code: 0, out: [], err: notes })
    expect(changes(producer).map(({ name, fields }) => [name, fields['channel']])).toEqual([
      ['DEL_CHANNEL', 12],
      ['DEL_CHANNEL', 7],
    ])
  })

  test('purge what waits there, and keep them', async () => {
    const { code, err, producer } = await runCli(['channels', 'purge', 'billing', '--yes'], known)
    expect({ code, err }).toEqual({ code: 0, err: ['channel 7 (billing): 5 values dropped'] })
    expect(producer.asked.at(-1)).toMatchObject({ of: 'channel.purge', args: { channel: 7n } })
  })

  test.each(['delete', 'purge'])(
    '%s says how many values of whom would go, and does nothing without an answer',
    async (word) => {
      const { code, err, producer } = await runCli(['channels', word, '12', 'billing'], known)
      expect(code).toBe(2)
      expect(err).toEqual([
        'channel 12 of acme/bob: 416969 values not committed (398 MiB)',
        'channel 7 (billing) of alice: 5 values not committed (3.91 KiB)',
        'cinnabar: nothing was changed, because there is no terminal to ask at: add --yes to do it',
      ])
      expect(changes(producer)).toEqual([])
    },
  )

  test.each([
    ['y', 0],
    ['Yes ', 0],
    ['', 1],
    ['n', 1],
    ['yes, but', 1],
  ])('at a terminal %j is answered with exit code %i', async (answer, expected) => {
    const { code, err, producer } = await runCli(['channels', 'purge', 'billing'], known, { answers: [answer] })
    expect(code).toBe(expected)
    expect(err[1]).toBe('Drop these values? [y/N] ')
    expect(changes(producer)).toHaveLength(expected === 0 ? 1 : 0)
  })

  test('a name alone never reaches channels of others, not even with --yes', async () => {
    const { code, err, producer } = await runCli(['channels', 'purge', 'warehouse', '--yes'], known)
    expect(code).toBe(1)
    expect(err[0]).toBe(
      'cinnabar: you have no channel warehouse, but others have (1301 of acme/bob): give an id, or write acme/warehouse',
    )
    expect(changes(producer)).toEqual([])
  })

  test.each([
    ['acme/warehouse', 1301],
    ['acme/bob/warehouse', 1301],
    ['acme/bob/twice', 20],
    ['default/billing', 7],
    ['acme/billing', 70],
    ['a/b', 30],
  ])('%s is the channel %i', async (name, id) => {
    const { code, producer } = await runCli(['channels', 'delete', name, '--yes'], known)
    expect(code).toBe(0)
    expect(changes(producer).map(({ fields }) => fields['channel'])).toEqual([id])
  })

  test.each([
    ['biling', /you have no channel biling/],
    ['acme/biling', /you have no channel acme\/biling/],
    ['globex/warehouse', /you have no channel globex\/warehouse/],
    ['acme/twice', /several channels have the name acme\/twice \(20 of acme\/bob, 21 of acme\/eve\)/],
  ])('change nothing if one of them does not exist, or could be several: %s', async (name, message) => {
    const { code, err, producer } = await runCli(['channels', 'delete', '12', name, '--yes'], known)
    expect(code).toBe(1)
    expect(err[0]).toMatch(message)
    expect(changes(producer)).toEqual([])
  })

  test('delete all orphans, each only if it still is one', async () => {
    const script: Script = ({ name, args }) => {
      if (name === 'QUERY') {
        const orphan = { state: 'orphan' }
        const all = list(channel(5), channel(6, orphan), channel(7, orphan), channel(8, { ...orphan, identity: 'bob' }))
        return { followedBy: [{ answer: all }] }
      }
      if (args['channel'] === 7n) return { status: 'BUSY', detail: 'a connection has taken it' }
      return { followedBy: [{ answer: rec(string('outcome', 'ok')) }] }
    }
    expect((await runCli(['channels', 'delete', '--orphans'], script)).code).toBe(2)
    const { code, out, err, producer } = await runCli(['channels', 'delete', '--orphans', '--yes'], script)
    expect({ code, out }).toEqual({ code: 0, out: [] })
    expect(err).toEqual([
      'channel 6 of alice deleted',
      expect.stringMatching(/^channel 7 of alice is left alone: .*a connection has taken it/),
      'channel 8 of bob deleted',
    ])
    expect(changes(producer).map(({ of, args }) => [of, args])).toEqual(
      [6n, 7n, 8n].map((id) => ['channel.delete', { channel: id, orphan: true }]),
    )
    expect((await runCli(['channels', 'delete', '--orphans', '7'], script)).code).toBe(2)
    const none: Script = () => ({ followedBy: [{ answer: list(channel(5)) }] })
    expect((await runCli(['channels', 'delete', '--orphans'], none)).err).toEqual(['there are no orphans'])
  })

  test('say what to do if there is no such channel', async () => {
    const { code, err } = await runCli(['channels', 'delete', '7', '--yes'], () => ({ status: 'NO_SUCH_CHANNEL' }))
    expect(code).toBe(1)
    expect(err[1]).toBe('`cinnabar channels` lists the channels of this user')
    expect((await runCli(['channels', 'delete'], known)).code).toBe(2)
  })
})

describe('the others', () => {
  const all: Script = ({ name, of }) => {
    if (name !== 'QUERY')
      return { followedBy: [{ answer: rec(string('outcome', 'ok'), string('detail', `${of} done`)) }] }
    const theirs = [channel(1, { identity: 'acme/bob', queued: 9 }), channel(2, { identity: 'acme/bob' }), channel(3)]
    return { followedBy: [{ answer: list(...theirs) }] }
  }

  test.each([
    ['user remove acme/bob', 'user acme/bob with 2 channels, 10 values not committed, and all tokens'],
    ['user remove default/alice', 'user alice with 1 channel, 0 values not committed, and all tokens'],
    ['user remove acme/eve', 'user acme/eve with no channel that you can see, 0 values not committed, and all tokens'],
    ['tenant remove acme', 'tenant acme with its quotas'],
    ['role remove night', 'role night with all its rules'],
  ])('%s asks before it does anything', async (line, what) => {
    const refused = await runCli(line.split(' '), all)
    expect([refused.code, refused.err[0]]).toEqual([2, what])
    expect(changes(refused.producer)).toEqual([])
    const answered = await runCli(line.split(' '), all, { answers: ['y'] })
    expect([answered.code, changes(answered.producer).length]).toEqual([0, 1])
    const yes = await runCli([...line.split(' '), '--yes'], all)
    expect([yes.code, yes.producer.asked.length]).toEqual([0, 1])
  })
})
