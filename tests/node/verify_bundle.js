// A Sigstore bundle checked by npm's own verifier, without any code of labaudit.
//
//   node verify_bundle.js BUNDLE TRUSTED_ROOT --key PUB
//   node verify_bundle.js BUNDLE TRUSTED_ROOT --identity EMAIL --issuer URL
'use strict'
const crypto = require('node:crypto')
const fs = require('node:fs')
const { bundleFromJSON } = require('@sigstore/bundle')
const { TrustedRoot } = require('@sigstore/protobuf-specs')
const { Verifier, toSignedEntity, toTrustMaterial } = require('@sigstore/verify')

const [bundlePath, rootPath, ...rest] = process.argv.slice(2)
const option = (name) => rest[rest.indexOf(name) + 1]
const read = (file) => JSON.parse(fs.readFileSync(file, 'utf8'))

try {
  const bundle = bundleFromJSON(read(bundlePath))
  const root = TrustedRoot.fromJSON(read(rootPath))
  if (rest.includes('--key')) {
    const publicKey = crypto.createPublicKey(fs.readFileSync(option('--key')))
    const hint = crypto.createHash('sha256').update(publicKey.export({ format: 'der', type: 'spki' })).digest('base64')
    const find = (wanted) => {
      if (wanted !== hint) throw new Error(`the bundle names key ${wanted}, not ${hint}`)
      return { publicKey, validFor: () => true }
    }
    const verifier = new Verifier(toTrustMaterial(root, find), { tlogThreshold: 0, ctlogThreshold: 0, tsaThreshold: 0 })
    verifier.verify(toSignedEntity(bundle))
  } else {
    const verifier = new Verifier(toTrustMaterial(root), { tlogThreshold: 1, ctlogThreshold: 1, tsaThreshold: 0 })
    verifier.verify(toSignedEntity(bundle), {
      // Taken as a pattern by the verifier: without its ends, one identity would pass for a longer one.
      subjectAlternativeName: `^${option('--identity').replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`,
      extensions: { issuer: option('--issuer') }
    })
  }
  console.log('verified')
} catch (error) {
  console.error(`refused: ${error.message}`)
  process.exit(1)
}
