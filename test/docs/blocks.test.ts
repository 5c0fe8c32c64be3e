/**
 * Every block of every document is run, checked, or, where a test in a browser runs it, named there. docs/contributing.md
 * says how a block is written; a new document needs nothing here. The long form runs them, the short one checks
 * how they are written. Pages are run beside each other, since they mostly wait; the blocks of a page in their order.
 */
import { afterAll, beforeAll, describe, it } from 'vitest'
import { isLong } from '../support/long.ts'
import { pages } from './page.ts'
import { languageOf, missingOn, Trials } from './trials.ts'

const documents = pages().filter(({ blocks }) => blocks.length > 0)
let trials: Trials | undefined

beforeAll(async () => {
  trials = await Trials.open(documents)
})
afterAll(() => trials?.close())

describe.concurrent.each(documents)('in $path', (page) => {
  for (const block of page.blocks) {
    const { says } = languageOf(block)
    it.sequential(`${isLong ? says : 'the block is well-formed'} (${page.path}:${block.line})`, async (context) => {
      if (!isLong) return trials?.check(page, block)
      const missing = missingOn(page, block)
      if (missing !== undefined) context.skip(`apt-get install ${missing}`)
      await trials?.run(page, block)
    })
  }
})
