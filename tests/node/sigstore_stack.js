// A Sigstore of one's own on loopback, for tests: certificate authority, CT log, transparency log, timestamp authority.
//
//   node sigstore_stack.js FOLDER [MINUTES]
//
// prints "ready PORT"; FOLDER gets trust_config.json and trusted_root.json. Certificates are dated MINUTES ahead.
// The parts come from @sigstore/mock. What is done here: their keys are put into a trust configuration, and requests
// of Sigstore's Python client are brought into the shapes that the parts take.
'use strict'
const crypto = require('node:crypto')
const fs = require('node:fs')
const http = require('node:http')
const path = require('node:path')
const mock = require('@sigstore/mock')
const pkijs = require('pkijs')

const folder = process.argv[2]
const ahead = Number(process.argv[3] || 0) * 60 * 1000
const HOUR = 3600 * 1000
const since = new Date(Date.now() - HOUR).toISOString()

const base64 = (bytes) => Buffer.from(bytes).toString('base64')
const sha256 = (bytes) => crypto.createHash('sha256').update(bytes).digest()
const newKey = () => crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' })
const publicBytes = (pair) => pair.publicKey.export({ format: 'der', type: 'spki' })
const json = (status, value) => ({ status, type: 'application/json', body: JSON.stringify(value) })

function logEntry (origin, pair) {
  const key = publicBytes(pair)
  return {
    baseUrl: origin,
    hashAlgorithm: 'SHA2_256',
    publicKey: { rawBytes: base64(key), keyDetails: 'PKIX_ECDSA_P256_SHA_256', validFor: { start: since } },
    logId: { keyId: base64(sha256(key)) },
    operator: 'labaudit tests'
  }
}

function authorityEntry (origin, chain) {
  return {
    subject: { organization: 'labaudit tests', commonName: 'test authority' },
    uri: origin,
    certChain: { certificates: chain.map((certificate) => ({ rawBytes: base64(certificate) })) },
    validFor: { start: since },
    operator: 'labaudit tests'
  }
}

function service (url, version) {
  return { url, majorApiVersion: version, validFor: { start: since }, operator: 'labaudit tests' }
}

function certificates (authority) {
  const fulcio = mock.fulcioHandler(authority, { strict: true, subjectClaim: 'email' })
  return async (request, body) => {
    const wanted = JSON.parse(body)
    const bearer = (request.headers.authorization || '').match(/^Bearer (.+)$/)
    if (bearer) wanted.credentials = { oidcIdentityToken: bearer[1] }
    const csr = wanted.certificateSigningRequest
    if (csr && !csr.includes('BEGIN')) wanted.certificateSigningRequest = Buffer.from(csr, 'base64').toString()
    const answer = await fulcio.fn(JSON.stringify(wanted))
    return { status: answer.statusCode, type: answer.contentType, body: answer.response }
  }
}

// The log keeps a digest of a DSSE envelope, not the envelope: the proposal is reduced as the public log reduces it.
function entries (log) {
  return async (request, body) => {
    const proposal = JSON.parse(body)
    const { envelope, verifiers } = proposal.spec.proposedContent
    const { payload, signatures } = JSON.parse(envelope)
    const digest = (bytes) => ({ algorithm: 'sha256', value: sha256(bytes).toString('hex') })
    return json(201, await log.log({
      kind: 'dsse',
      apiVersion: '0.0.1',
      spec: {
        envelopeHash: digest(envelope),
        payloadHash: digest(Buffer.from(payload, 'base64')),
        signatures: signatures.map(({ sig }) => ({ signature: sig, verifier: verifiers[0] }))
      }
    }))
  }
}

function timestamps (authority) {
  const plain = authority.tstInfo.bind(authority)
  return async (request, body) => {
    const query = pkijs.TimeStampReq.fromBER(body)
    authority.tstInfo = (options) => {
      const info = plain(options)
      if (query.nonce) info.nonce = query.nonce // as it came: the part itself takes small numbers only
      info.genTime.setMilliseconds(0)
      return info
    }
    const answer = await authority.timestamp({
      artifactHash: Buffer.from(query.messageImprint.hashedMessage.valueBlock.valueHexView),
      hashAlgorithmOID: query.messageImprint.hashAlgorithm.algorithmId,
      policyOID: '1.3.6.1.4.1.57264.2',
      certReq: query.certReq,
      nonce: 1
    })
    return { status: 201, type: 'application/timestamp-reply', body: answer }
  }
}

async function serve (routes, request, response) {
  const parts = []
  for await (const part of request) parts.push(part)
  const route = routes[request.url]
  let answer = { status: 404, type: 'text/plain', body: 'no such service' }
  try {
    if (route) answer = await route(request, Buffer.concat(parts))
  } catch (error) {
    answer = { status: 500, type: 'text/plain', body: String(error.stack) }
  }
  response.writeHead(answer.status, { 'content-type': answer.type || 'text/plain' })
  response.end(answer.body)
}

async function main () {
  const keys = { ct: newKey(), ca: newKey(), log: newKey(), tsa: newKey() }
  const ct = await mock.initializeCTLog(keys.ct)
  const ca = await mock.initializeCA(keys.ca, ct)
  ca.getCurrentTime = () => new Date(Date.now() + ahead)
  const tsa = await mock.initializeTSA(keys.tsa)
  const routes = {}
  const server = http.createServer((request, response) => serve(routes, request, response))
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${server.address().port}`
  routes['/api/v2/signingCert'] = certificates(ca)
  routes['/api/v1/log/entries'] = entries(await mock.initializeTLog(origin, keys.log))
  routes['/api/v1/timestamp'] = timestamps(tsa)
  const trustedRoot = {
    mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
    tlogs: [logEntry(origin, keys.log)],
    ctlogs: [logEntry(origin, keys.ct)],
    certificateAuthorities: [authorityEntry(origin, [ca.rootCertificate])],
    timestampAuthorities: [authorityEntry(origin, [tsa.intCertificate, tsa.rootCertificate])]
  }
  const signingConfig = {
    mediaType: 'application/vnd.dev.sigstore.signingconfig.v0.2+json',
    caUrls: [service(origin, 1)],
    oidcUrls: [service(origin, 1)],
    rekorTlogUrls: [service(origin, 1)],
    rekorTlogConfig: { selector: 'ANY' },
    tsaUrls: [service(`${origin}/api/v1/timestamp`, 1)],
    tsaConfig: { selector: 'ANY' }
  }
  const mediaType = 'application/vnd.dev.sigstore.clienttrustconfig.v0.1+json'
  fs.writeFileSync(path.join(folder, 'trust_config.json'), JSON.stringify({ mediaType, trustedRoot, signingConfig }))
  fs.writeFileSync(path.join(folder, 'trusted_root.json'), JSON.stringify(trustedRoot))
  console.log(`ready ${server.address().port}`)
}

main().catch((error) => { console.error(error); process.exit(1) })
