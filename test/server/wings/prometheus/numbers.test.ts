/** Numbers of any kind by remote write: each sample is taken or refused, and whoever reads can write it. */
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import fc from 'fast-check'
import { snappyCompress } from 'hysnappy'
import { expect, it } from 'vitest'
import { WriteDoor } from '../../../../server/wings/prometheus/door.ts'
import { DescribedFamilies } from '../../../../server/wings/prometheus/families.ts'
import { times } from '../../../support/long.ts'
import { doubles, int64s } from '../../../support/odd-numbers.ts'
import { lastOf } from '../../../support/readers.ts'
import { publishing } from '../publishing.ts'

interface Sample {
  /** The value itself, or its bits. */
  readonly value: number | bigint
  readonly timeMs: bigint
}

interface Written {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly samples: readonly Sample[]
}

/** A WriteRequest (remote write 1.0): its series are field 1, with labels 1 and samples 2. */
function request(all: readonly Written[]): Uint8Array {
  const writer = new BinaryWriter()
  const begin = (field: number): BinaryWriter => writer.tag(field, WireType.LengthDelimited).fork()
  for (const { name, labels, samples } of all) {
    begin(1)
    for (const [label, text] of Object.entries({ __name__: name, ...labels })) {
      begin(1).tag(1, WireType.LengthDelimited).string(label).tag(2, WireType.LengthDelimited).string(text).join()
    }
    for (const { value, timeMs } of samples) {
      begin(2).tag(1, WireType.Bit64)
      if (typeof value === 'bigint') writer.fixed64(value)
      else writer.double(value)
      writer.tag(2, WireType.Varint).int64(timeMs).join()
    }
    writer.join()
  }
  return snappyCompress(writer.finish())
}

/** Any double, any bits: NaN has many, one of which says that a series has ended. */
const values = fc.oneof(doubles, fc.constantFrom(0x7ff0000000000002n, 0x7ff8000000000001n, 0xfff0000000000002n))
const timesMs = fc.oneof(fc.constantFrom(0n, 1n, 1_700_000_000_000n, -1n, 9_007_199_254_740n), int64s)
const series: fc.Arbitrary<Written> = fc.record({
  name: fc.constantFrom('a', 'a_bucket', 'a_count'),
  labels: fc.constantFrom({}, { zone: 'x' }),
  samples: fc.array(fc.record({ value: values, timeMs: timesMs }), { minLength: 1, maxLength: 4 }),
})

it('are taken, or refused with 400, and cost no later request anything', () =>
  fc.assert(
    fc.asyncProperty(fc.array(fc.array(series, { maxLength: 4 }), { maxLength: 3 }), async (requests) => {
      const { readers, post } = publishing(
        'prometheus',
        (publication, { poll }) => new WriteDoor({ publication, metadata: new DescribedFamilies(), poll }),
      )
      for (const given of requests) {
        const { status, body } = await post(request(given), 'application/x-protobuf')
        expect(status, String(body)).toBeOneOf([204, 400])
        await readers.read()
      }
      const good = { name: 'good', labels: {}, samples: [{ value: 7, timeMs: 1_700_000_000_000n }] }
      await post(request([good]), 'application/x-protobuf')
      expect(lastOf(await readers.read(), 'prometheus.good')).toBe(7)
    }),
    { numRuns: times({ short: 20, long: 80 }) },
  ))
