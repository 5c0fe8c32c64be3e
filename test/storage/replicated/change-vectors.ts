/**
 * Every kind of change as bytes, put together from docs/protocol/replicated-log.md and not by the encoder: the tag, then a group of
 * hexadecimal digits for each number, flag and word, and two for each text: its length, then its UTF-8. A number is what
 * `struct.pack('<d', n)` of Python gives: 7 is 0000000000001c40, 5 is 0000000000001440, 40 is 0000000000004440.
 */
import type { Change } from '../../../storage/store.ts'
import { hex } from '../../support/bytes.ts'

type Named<Kind> = Kind extends { readonly put: infer Name extends string }
  ? `put ${Name}`
  : Kind extends { readonly remove: infer Name extends string }
    ? `remove ${Name}`
    : never

export interface ChangeVector {
  readonly change: Change
  readonly bytes: string
}

/** The compiler asks for a vector of each kind. */
export const CHANGES: Readonly<Record<Named<Change>, ChangeVector>> = {
  'put tenant': {
    change: { put: 'tenant', row: { name: 'ops', quota: '{}' } },
    bytes: '01 03000000 6f7073 02000000 7b7d',
  },
  'put user': {
    change: {
      put: 'user',
      row: {
        id: 7,
        tenant: 'ops',
        name: 'ann',
        role: 'viewer',
        bcrypt: '$2b',
        scram: { salt: hex('0102'), iterations: 4096, storedKey: hex('03'), serverKey: hex('0405') },
        loopbackOnly: true,
        created: 1700000000000,
      },
    },
    bytes:
      '02 0000000000001c40 03000000 6f7073 03000000 616e6e 06000000 766965776572 01 03000000 243262 01 ' +
      '02000000 0102 000000000000b040 01000000 03 02000000 0405 01 00008056febc7842',
  },
  'put channel': {
    change: {
      put: 'channel',
      row: {
        id: 5,
        user: 7,
        name: '',
        url: 'u',
        defined: true,
        configured: false,
        durable: true,
        window: 100,
        windowBytes: 65536,
        maxBytes: 1048576,
        maxAgeMs: 604800000,
        expireMs: 0,
        overflow: 'keep-latest',
        origin: 1,
        lastUsed: 12.5,
        paused: false,
      },
    },
    bytes:
      '03 0000000000001440 0000000000001c40 00000000 01000000 75 01 00 01 0000000000005940 000000000000f040 ' +
      '0000000000003041 000000004206c241 0000000000000000 02 000000000000f03f 0000000000002940 00',
  },
  'put lost name': {
    change: { put: 'lost name', row: { user: 7, name: 'n', reason: 'purged' } },
    bytes: '04 0000000000001c40 01000000 6e 01',
  },
  'put instance': {
    change: { put: 'instance', row: { id: 40, user: 7, metric: 'host.load.one', args: hex('00000000') } },
    bytes: '05 0000000000004440 0000000000001c40 0d000000 686f73742e6c6f61642e6f6e65 04000000 00000000',
  },
  'put binding': {
    change: { put: 'binding', row: { channel: 5, metric: 40, mode: 'buffer', since: 3 } },
    bytes: '06 0000000000001440 0000000000004440 01 0000000000000840',
  },
  'put place': {
    change: { put: 'place', row: { channel: 5, metric: 40, reached: 9007199254740991 } },
    bytes: '07 0000000000001440 0000000000004440 ffffffffffff3f43',
  },
  'put upstream': {
    change: { put: 'upstream', row: { name: 'ops/é', generation: 'g', channel: 5, reached: 2 } },
    bytes: '08 06000000 6f70732fc3a9 01000000 67 0000000000001440 0000000000000040',
  },
  'put stop': {
    change: { put: 'stop', row: { channel: 5, metric: 40, through: 9 } },
    bytes: '09 0000000000001440 0000000000004440 0000000000002240',
  },
  'put result': {
    change: { put: 'result', row: { id: 1, channel: 5, user: 7, control: 'c', transaction: 0 } },
    bytes: '0a 000000000000f03f 0000000000001440 0000000000001c40 01000000 63 0000000000000000',
  },
  'put rule': {
    change: {
      put: 'rule',
      row: { number: 1, role: 'viewer', effect: 'deny', command: '*', object: 'host.*', where: '{}' },
    },
    bytes: '0b 000000000000f03f 06000000 766965776572 01 01000000 2a 06000000 686f73742e2a 02000000 7b7d',
  },
  'put token': {
    change: { put: 'token', row: { id: 1, user: 7, name: 'ci', hash: hex('aabb'), scope: '', made: 1, expires: 2 } },
    bytes:
      '0c 000000000000f03f 0000000000001c40 02000000 6369 02000000 aabb 00000000 000000000000f03f 01 ' +
      '0000000000000040',
  },
  'put dial': {
    change: { put: 'dial', row: { channel: 5, scram: undefined, bearer: hex('c0de') } },
    bytes: '0d 0000000000001440 00 01 02000000 c0de',
  },
  'put audit': {
    change: {
      put: 'audit',
      row: {
        number: 1,
        time: 1700000000000000,
        action: 'auth',
        actor: 'ops/ann',
        tenant: 'ops',
        address: '',
        object: '',
        args: '',
        outcome: 'ok',
        detail: '',
        hash: hex('ff'),
      },
    },
    bytes:
      '0e 000000000000f03f 0000796090281843 04000000 61757468 07000000 6f70732f616e6e 03000000 6f7073 ' +
      '00000000 00000000 00000000 02000000 6f6b 00000000 01000000 ff',
  },
  'put execution': {
    change: {
      put: 'execution',
      row: { user: 7, control: 'c', key: 'k', digest: hex('ee'), at: -1.5, result: undefined },
    },
    bytes: '0f 0000000000001c40 01000000 63 01000000 6b 01000000 ee 000000000000f8bf 00',
  },
  'put fence': {
    change: { put: 'fence', row: { sensor: 'exec.x' } },
    bytes: '10 06000000 657865632e78',
  },
  'put closed': {
    change: { put: 'closed', row: {} },
    bytes: '11',
  },
  'put recovered': {
    change: { put: 'recovered', row: {} },
    bytes: '12',
  },
  'put qmf agent': {
    change: { put: 'qmf agent', row: { systemId: 'id-1', boot: 3, banks: '{}' } },
    bytes: '13 04000000 69642d31 0000000000000840 02000000 7b7d',
  },
  'put upstream binding': {
    change: {
      put: 'upstream binding',
      row: { upstream: 'ops/é', generation: 'g', channel: 5, metric: 40, selection: '["a",["h","é"]]' },
    },
    bytes:
      '14 06000000 6f70732fc3a9 01000000 67 0000000000001440 0000000000004440 10000000 5b2261222c5b2268222c22c3a9225d5d',
  },
  'put board': {
    change: {
      put: 'board',
      row: { id: 5, user: 7, name: 'n', charts: 'chart=a', shared: true, version: 3, saved: 1700000000000 },
    },
    bytes:
      '15 0000000000001440 0000000000001c40 01000000 6e 07000000 63686172743d61 01 0000000000000840 ' +
      '00008056febc7842',
  },
  'put alert group': {
    change: { put: 'alert group', row: { name: 'g', reached: 1700000000000, sequence: 7 } },
    bytes: '16 01000000 67 00008056febc7842 0000000000001c40',
  },
  'put alert': {
    change: {
      put: 'alert',
      row: {
        rule: 'r',
        labels: '[]',
        annotations: '[["a","b"]]',
        state: 'firing',
        value: 'NaN',
        active: 5,
        fired: 7,
        kept: undefined,
        resolved: undefined,
        missing: undefined,
      },
    },
    bytes:
      '17 01000000 72 02000000 5b5d 0b000000 5b5b2261222c2262225d5d 01 03000000 4e614e 0000000000001440 ' +
      '01 0000000000001c40 00 00 00',
  },
  'put notify group': {
    change: {
      put: 'notify group',
      row: { notifier: 'o/n', labels: '[]', number: 7, told: 5, due: 7, sending: '{}' },
    },
    bytes: '18 03000000 6f2f6e 02000000 5b5d 0000000000001c40 0000000000001440 0000000000001c40 02000000 7b7d',
  },
  'put notify alert': {
    change: { put: 'notify alert', row: { notifier: 'o/n', fingerprint: 'f', alert: '{}', told: 'firing' } },
    bytes: '19 03000000 6f2f6e 01000000 66 02000000 7b7d 01',
  },
  'put silence': {
    change: {
      put: 'silence',
      row: {
        tenant: 'o',
        id: 'i',
        kind: 'acknowledgement',
        matchers: '[]',
        begins: 5,
        ends: 7,
        author: 'a',
        comment: '',
      },
    },
    bytes: '1b 01000000 6f 01000000 69 01 02000000 5b5d 0000000000001440 0000000000001c40 01000000 61 00000000',
  },
  'put approval': {
    change: {
      put: 'approval',
      row: {
        id: 'i',
        user: 7,
        role: 'r',
        control: 'c',
        args: hex('00000000'),
        channel: 5,
        result: 1,
        execution: 'k',
        repeats: '[]',
        address: 'a',
        destination: '',
        scope: '',
        token: 2,
        asked: 5,
        age: 7,
        timeout: 5,
        digest: hex('aabb'),
        preview: undefined,
      },
    },
    bytes:
      '1d 01000000 69 0000000000001c40 01000000 72 01000000 63 04000000 00000000 0000000000001440 000000000000f03f ' +
      '01000000 6b 02000000 5b5d 01000000 61 00000000 00000000 0000000000000040 0000000000001440 0000000000001c40 0000000000001440 ' +
      '02000000 aabb 00',
  },
  'put notifier': {
    change: {
      put: 'notifier',
      row: {
        ...{ tenant: 'o', name: 'n', user: 7, author: 'a', token: 0, scope: '', put: 5, settings: 's' },
        sealed: Uint8Array.of(1, 2),
      },
    },
    bytes:
      '1e 01000000 6f 01000000 6e 0000000000001c40 01000000 61 0000000000000000 00000000 0000000000001440 01000000 73 02000000 0102',
  },
  'put rule file': {
    change: {
      put: 'rule file',
      row: { tenant: 'o', name: 'n', user: 7, author: 'a', scope: '', put: 5, rules: 'r', token: 2 },
    },
    bytes:
      '1f 01000000 6f 01000000 6e 0000000000001c40 01000000 61 00000000 0000000000001440 01000000 72 0000000000000040',
  },
  'put notification': {
    change: {
      put: 'notification',
      row: {
        notifier: 'o/n',
        key: 'k',
        at: 5,
        labels: '[]',
        firing: 7,
        resolved: 5,
        attempts: 7,
        outcome: 'refused',
        detail: 'd',
        alerts: '[]',
      },
    },
    bytes:
      '20 03000000 6f2f6e 01000000 6b 0000000000001440 02000000 5b5d 0000000000001c40 0000000000001440 0000000000001c40 01 01000000 64 02000000 5b5d',
  },
  'remove tenant': {
    change: { remove: 'tenant', name: 'ops' },
    bytes: '81 03000000 6f7073',
  },
  'remove user': {
    change: { remove: 'user', id: 7 },
    bytes: '82 0000000000001c40',
  },
  'remove channel': {
    change: { remove: 'channel', id: 5 },
    bytes: '83 0000000000001440',
  },
  'remove lost name': {
    change: { remove: 'lost name', user: 7, name: 'n' },
    bytes: '84 0000000000001c40 01000000 6e',
  },
  'remove instance': {
    change: { remove: 'instance', id: 40 },
    bytes: '85 0000000000004440',
  },
  'remove binding': {
    change: { remove: 'binding', channel: 5, metric: 40 },
    bytes: '86 0000000000001440 0000000000004440',
  },
  'remove upstream': {
    change: { remove: 'upstream', name: 'o' },
    bytes: '88 01000000 6f',
  },
  'remove stop': {
    change: { remove: 'stop', channel: 5, metric: 40 },
    bytes: '89 0000000000001440 0000000000004440',
  },
  'remove result': {
    change: { remove: 'result', id: 1 },
    bytes: '8a 000000000000f03f',
  },
  'remove rule': {
    change: { remove: 'rule', number: 1 },
    bytes: '8b 000000000000f03f',
  },
  'remove token': {
    change: { remove: 'token', id: 1 },
    bytes: '8c 000000000000f03f',
  },
  'remove audit': {
    change: { remove: 'audit', through: 10 },
    bytes: '8e 0000000000002440',
  },
  'remove execution': {
    change: { remove: 'execution', before: 12.5 },
    bytes: '8f 0000000000002940',
  },
  'remove fence': {
    change: { remove: 'fence', sensor: 's' },
    bytes: '90 01000000 73',
  },
  'remove upstream binding': {
    change: { remove: 'upstream binding', upstream: 'o', metric: 40 },
    bytes: '94 01000000 6f 0000000000004440',
  },
  'remove board': {
    change: { remove: 'board', id: 1 },
    bytes: '95 000000000000f03f',
  },
  'remove alert group': {
    change: { remove: 'alert group', name: 'g' },
    bytes: '96 01000000 67',
  },
  'remove alert': {
    change: { remove: 'alert', rule: 'r', labels: '[]' },
    bytes: '97 01000000 72 02000000 5b5d',
  },
  'remove notify group': {
    change: { remove: 'notify group', notifier: 'o/n', labels: '[]' },
    bytes: '98 03000000 6f2f6e 02000000 5b5d',
  },
  'remove notify alert': {
    change: { remove: 'notify alert', notifier: 'o/n', fingerprint: 'f' },
    bytes: '99 03000000 6f2f6e 01000000 66',
  },
  'remove silence': {
    change: { remove: 'silence', tenant: 'o', id: 'i' },
    bytes: '9b 01000000 6f 01000000 69',
  },
  'remove approval': {
    change: { remove: 'approval', id: 'i' },
    bytes: '9d 01000000 69',
  },
  'remove notifier': {
    change: { remove: 'notifier', tenant: 'o', name: 'n' },
    bytes: '9e 01000000 6f 01000000 6e',
  },
  'remove rule file': {
    change: { remove: 'rule file', tenant: 'o', name: 'n' },
    bytes: '9f 01000000 6f 01000000 6e',
  },
  'remove notification': {
    change: { remove: 'notification', notifier: 'o/n', key: 'k' },
    bytes: 'a0 03000000 6f2f6e 01000000 6b',
  },
}

export interface EarlierVector extends ChangeVector {
  readonly kind: Named<Change>
  /** The columns that are not in the bytes. */
  readonly lacks: readonly string[]
}

/** What earlier versions wrote: the vectors of their time, with the change as which they are read now. */
export const EARLIER_CHANGES: readonly EarlierVector[] = [
  {
    kind: 'put notification',
    change: {
      put: 'notification',
      row: {
        notifier: 'o/n',
        key: 'k',
        at: 5,
        labels: '[]',
        firing: 7,
        resolved: 5,
        attempts: 7,
        outcome: 'refused',
        detail: 'd',
        alerts: '[]',
      },
    },
    lacks: ['alerts'],
    bytes:
      '1a 03000000 6f2f6e 01000000 6b 0000000000001440 02000000 5b5d 0000000000001c40 0000000000001440 0000000000001c40 01 01000000 64',
  },
  {
    kind: 'put rule file',
    change: {
      put: 'rule file',
      row: { tenant: 'o', name: 'n', user: 7, author: 'a', scope: '', put: 5, rules: 'r', token: 0 },
    },
    lacks: ['token'],
    bytes: '1c 01000000 6f 01000000 6e 0000000000001c40 01000000 61 00000000 0000000000001440 01000000 72',
  },
  {
    kind: 'remove notification',
    change: { remove: 'notification', notifier: 'o/n', key: 'k' },
    lacks: [],
    bytes: '9a 03000000 6f2f6e 01000000 6b',
  },
  {
    kind: 'remove rule file',
    change: { remove: 'rule file', tenant: 'o', name: 'n' },
    lacks: [],
    bytes: '9c 01000000 6f 01000000 6e',
  },
]
