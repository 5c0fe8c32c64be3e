import { describe, expect, it } from 'vitest'
import { Chunk, Pool } from '../../../../server/kernel/channels/pool.ts'

describe('the pool', () => {
  it('uses a buffer again when its block has let go of it', () => {
    const pool = new Pool()
    const chunk = pool.take(1_000)
    expect(chunk.bytes.length).toBe(1_024)
    expect(pool.used).toBe(1_024)
    chunk.release()
    expect(pool.used).toBe(0)
    expect(pool.take(600) === chunk).toBe(true)
  })

  it('does not while a link still sends from it', () => {
    const pool = new Pool()
    const chunk = pool.take(1_000)
    chunk.hold()
    chunk.hold()
    chunk.release()
    chunk.unhold()
    expect(pool.take(1_000) === chunk).toBe(false)
    chunk.unhold()
    expect(pool.take(1_000) === chunk).toBe(true)
  })

  it('keeps a buffer that was sent from before its block let go', () => {
    const pool = new Pool()
    const chunk = pool.take(1_000)
    chunk.hold()
    chunk.unhold()
    expect(pool.take(1_000) === chunk).toBe(false)
  })

  it('gives a value that is larger than all classes a buffer of its own, and forgets it', () => {
    const pool = new Pool()
    const chunk = pool.take(1 << 20)
    expect(chunk.bytes.length).toBe(1 << 20)
    chunk.release()
    expect(pool.used).toBe(0)
    expect(pool.take(1 << 20) === chunk).toBe(false)
  })

  it('counts what was read back as well', () => {
    const pool = new Pool()
    const chunk = Chunk.of(new Uint8Array(300), pool)
    expect(pool.used).toBe(300)
    chunk.release()
    expect(pool.used).toBe(0)
  })
})
