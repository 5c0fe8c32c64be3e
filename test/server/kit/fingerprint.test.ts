/** Fingerprints are those by which Alertmanager knows alerts: FNV-1a of 64 bits, checked against the same arithmetic with integers of any size. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { LabelSet } from '../../../promql/label-set.ts'
import { fingerprintOf } from '../../../server/kit/fingerprint.ts'

it('of no labels is the offset of the hash; of others what FNV-1a with exact integers gives', () => {
  expect(fingerprintOf(LabelSet.of([]))).toBe('cbf29ce484222325')
  const texts = fc.array(fc.tuple(fc.string({ minLength: 1 }), fc.string({ minLength: 1, unit: 'binary' })), {
    maxLength: 4,
  })
  fc.assert(
    fc.property(texts, (pairs) => {
      const labels = LabelSet.of(pairs)
      let hash = 0xcbf29ce484222325n
      for (const pair of labels)
        for (const text of pair)
          for (const byte of [...new TextEncoder().encode(text), 255])
            hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
      expect(fingerprintOf(labels)).toBe(hash.toString(16).padStart(16, '0'))
    }),
  )
})
