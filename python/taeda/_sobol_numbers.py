"""Initial direction numbers of Sobol sequences in 2 to 1111 dimensions.

They are the first rows of the table new-joe-kuo-6.21201 of S. Joe and F. Y. Kuo, "Constructing
Sobol sequences with better two-dimensional projections", SIAM J. Sci. Comput. 30, 2635-2654 (2008).

Number i (from 1) of a dimension is odd and has i bits; the last bit, always 1, is left out. The
bits of all numbers follow one another, each number from its lowest bit on.
"""

# The notice that comes with the table:
#
# Copyright (c) 2008, Frances Y. Kuo and Stephen Joe. All rights reserved.
#
# Redistribution and use in source and binary forms, with or without modification, are permitted
# provided that the following conditions are met:
#
# * Redistributions of source code must retain the above copyright notice, this list of conditions
#   and the following disclaimer.
# * Redistributions in binary form must reproduce the above copyright notice, this list of
#   conditions and the following disclaimer in the documentation and/or other materials provided
#   with the distribution.
# * Neither the names of the copyright holders nor the names of the University of New South Wales
#   and the University of Waikato and its contributors may be used to endorse or promote products
#   derived from this software without specific prior written permission.
#
# THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS "AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES,
# INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A
# PARTICULAR PURPOSE ARE DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT HOLDERS BE LIABLE FOR ANY
# DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT
# LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR SERVICES; LOSS OF USE, DATA, OR PROFITS; OR
# BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN CONTRACT, STRICT
# LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE OF THIS
# SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.

BITS = (
    "z@=pgNbHaTRbP$_byRjS@e{F%m;1cWw&E$|exwYvWg6nQ_-vKyA&9mT1E!V8n~JYNw~cWmMWR-Phk^I9&l@P%Q~L&Af8"
    "XHJ)fqo6*Afq{1!>{<9#BmnW=yHaK7dU-rxToB_II#_crfB^P8;xvEKy(YR+Uv`H8{F!@2ml`2!RfCL8}q-%+un~zAdz"
    "AI6U>I%Syrf_sUW(!f!kGC|~nq0ZE^7)B-B4^XV?u4&@3^uvidH?g77VK~@Dc3HuoTpMrebUy1~;{M>f=Dd8rH*V|qYF"
    "@a{Qf#<*xE>vE9P<6ikF=f2Eqb39nKBST#h8{xY3t}CW-1OWu(B`=~#<l!WX=)2?Nd8h2$o>;Nun#=vBU}IgNfUcNRmK"
    "tSO_hV!qDM$>yA`syQjH0L?q8Y0daS{0nMT>ov>bhA)(8IOQW{)sv!pB1Q=$@&?M`Vk_xvpM#f?v!YEv%Y9=Cbiu!uwf"
    "+NSsv`AV7p;-@l=mdqUo%9ALAk>*F@J&$Cs!JzqfQ*!es$Qz;{_dD-FYUoUuoK^!@{Y>UUsZTrYTXH-x;d2iS8CY4Sw0"
    "R>ow>dFBX4*grJI0<CI#(4(uGZahWlE}HRGiM*aIwcUhMeeYDftHFm{v~6U)~_IejP6e2!5SqPIrSOULN$$Bti~dLEH*"
    "8%kuW+t`FxlFoW)boo|9cOn<PgjTXPV&@McNxDTTm1<zzAw)D-Cn)w{dL)essU;&tcY3}BF#~4*@Z5oP-UmEtO<*W7<y"
    "J5@+_I?xHIeT9$6(UUIr!)rg@yqEnpr1)g_$6ud)<_^`(dgNy)7^*akbA2q|E{d1uW80t)=#aA5CU5=rIuy-&L{TkP-S"
    "y^i61+BUZ?b}hRAUk&zrrBd&7{0bJ*6UcO%%r_$JfMD-)vVMq!g^nXm)l*7P^FTM&@#tl7n@aN*OSY{B@-d_~*U2aQFh"
    "W5f%BXr2RBIp%^^0rS-FU2V<Cf1<tj@G%<)7w8Zfj5t#Z7aKBTyx8L(SaW$&6Kql(qc7{u_}bNcbvu@x`@ptl^w7o@-_"
    "Z*RpjNxQ6>(1G>8bNDA!A+D_yMUQ+Xx*?Q{6O;l8E2ZY)qE^Q}uw4Ru<^dn~kcl;?WS#2-cWuwg5>pw<e<GzwC3cBPu("
    "9<m&dv_E!D;kftYqc++1TCsgsjU~#YiVFrT;`-L&mB&k08Dk%g`{GRI*G^2sWznd#e>@l0j=2FcE(HLszDq?u9ml2>4W"
    "g8Y6D&Xv__PUBRz3S`~pTH|4(Mq*SUXYVuD2hhlTFyXnj)gczT_2XZ+=i5QH1x~n_3UqEiiz~eD^ot|RIFeX_?+Da7m|"
    "R6Jv}?HEPVwTpw>x*`<8I68)gZy=%!T$R3903vUtET{xqw`J;d6sz_BbsAw>l5#@?wh*XqU?ZtSJm52^i42_m@(?ULh$"
    "nAd*%Hbk4<tTALdeD!|TD&Ke4;?;ne2lUaCec{AtU#a)wo*B#JZ;Z*bs()uk$y*=o3s7|wQm!}4^=(p30&1ge(1U4LQ6"
    "j{Eb2Bg5X5$JX?Ye&qm;7JkW-qJHzvqqWJ1UgBG-J;Dv}I_frYC?Z69#|^3IbMyWUxw?sqfOZBC<>5ZHx&tfWs8GwdD6"
    "L$2yPvSpgD?^d=|$NP#^QVK-a`QP(f#yEab_pYZQaDXt7)WlPOrF8}9a%Aqn&gmc2&X6j^>NO25!WXidD{DekbDmB&Dg"
    ")mtNXRlt2i)m({z~p8QbU2yJg`uxa2jVN$>ihnmcsDLb6dn93dF9mz7~uHPhw`zMMXYdHc!*db2z8I-w;Un^{NJK;JWq"
    "be)03VGdiQ2aPsMwfE~QVw$cABqMSUsejJsdOEjgZKKyI5=?7Ynexo8zyeN?%yEGhUZdY87M$U>0xl{452y^x4g`3p*|"
    "=phUi&WOO}Qv2fMC|SZ(Ab^1dS70~X7^2RtAW~p(f@FPFHfMcGr+d6M)Y-n<1nsAXMR6N}Rl#tF^$<w0gjAw{b0-9Vk!"
    "@@(np$<V<JZ|xx7K=r+y17^?^wk)PGyzmR7Ap~iRu(Nzp;weyn6tCBuJ{V>+G#vk}$Uy;thtgOAlZZYooj6W67YjLY;Z"
    "H->U-b59{OL9}9(Fpv;kB4d0yM?&J6HPMnp`lq^ljb`bIrm~rt~ez{haox@h;cX_m1@||A;h%jWqyXVpx4746+%&HDL&"
    "j@`>s_UBv=XTas%_phkS`Ccidku}RN<wt&vkc{oWXFe0(+A8=W^foy8<<;42^XD`a|Mc%(^!n&+++<8TZ}o^@=Z_EIgg"
    "TIKBq$CW?7!?X3mxCk)7=hJX-F^d-LmR_cugF-)Ol49PXbGN5FMj5tPsIgt409JWrpfl&1kit}>GkmEao{`K{=5_f;ez"
    "GWu+x%7UkncA=+vjLRxmx~MgdoXBU8J@wu#NU3L?zA*TFZd0NmDY+Et94w|B^jz?+Ju>X`!5z-4=w#?!8|Z6-cJ>;m4!"
    "E@P&BXJRZf{(v7*M|C{5qr3-{3r<0~hC4HqmX&-J`a9bqYimp7^gNYhcBC-AmZivPLl(9+EO35^CrFD2&A1>-~Q&uy7w"
    "*o?##G#3v^X^1zl(29k$mv}gNyp=O^pTCT6&nf(%xi>&f^K*|gDjO~1cWNfT7khdXP*pe}D9w{CLjOstC>#dx7(@<3+f"
    "-gdc-@uoYZeW|6^N<0!gR%+wWMi6d38*5WqNkuAJp!u%-4pd4CM!k%1i?P=>Zy045?NHw0HTuVN6PuQThNJb=0XrdL2Q"
    "re;F8qJ{BKKZ`O4mz0LR$ZT0C@#Bw@m!4)w3bRFR~Afxsel479K1){GW$nL8rAPhJlDJ>^-LreAMe?$+$GSL1!(u7*1M"
    "I28$*%^x1R$gUQ4=PZwFtF@&{l9dLhBlea{3Pp{?4)~qZQwkJNJ3ng-x3J25Vsc5Lyae^Zz2=rH3oB1ak&$jmN_{cE(K"
    "Yy=EU$$6$=$1FaPSf+UqvGM5s5lN+kg}L71Euew4Vm86J2TMU?;4|ZBeOWl`nb{$zX<t18?D-qs&`*qH67JfzgGF;MkY"
    "qJu(o!p|<gu$9ya4Fc#CGk}R`HB$J;gtrQXxeFN@2ZBi_Yjf#=^g}}|X)_D1XK*k=%m-VX0d<+|yo>G0YMRV=+O5Chc#"
    "z^~W`O+Jo0DgrXR;w`vzLootpG}!id`}dnZra2ZN0Hvp*2-Jxe}>8wZzkk_MMe8>g~U(h<{vpTWDMnOt&Uk<zY2JfpV4"
    ";<c6npsDQj7{xoC`=y&+Dz*0nEt?75JSBzb>NFpM#DO0@yk$uy%o88^)f9NL6SUhgHz=c>+3D;{pS5@<ZQ=mBUwjTu(%"
    "XA~>ZQx}|Xb}RY;>Jcm3$AwG0T9}|&e^;Znujimm>8v*Dy0)`tZ#iRy&-J9en&!otF1{Xlg`B6{PO-rs1m%0zr?I1<Ca"
    "|>I@9MSk7JG4aL)Aazhnko>N&O$MUxBx0@@+MM!E_H}xY$kiSgGtpd~~VSyA38?kMvhtxjUHF>ZhX$Ju{EYMf@1;)|!Y"
    "V=qbY~Oy{#-=R4-PHReZfymx8gbt_%JNzV>z=RN+HOjkxcrd($KGBDJBDVHfS&rN^+CtccCw1bwNE*FXEJRa$>c?F@!G"
    "mfMDj4-f_^@YF7kQc8<y0C}2u%UsJdx=wUo09WrM+j$5rKGR)LFhJY{(*t<x#n$BiM$!EQy{IKMm9a8_UkTJ`cz1B4On"
    "60q2~g-NCo9PptzA^t!z0&s1uL^=h=ZTJWP{P{0dVR3KNe5Y6x}0aGjvr090UUFxf#?mWv_*;*o^9k3MsY%b_YNvc=06"
    "QJ_@C)J)KTtJ&HHyZ3QT?~%pjtTtshc~aSY3s#=370@$ivw1%gziki^9zjsNF3CN03KJ?8Moub5KqKWVIikm65P-wX1|"
    "-TKXb}pOR=d&2;GyKKlC*84>m$DduUOWGL7pl!J9gX!TGj~|tQcH&#0?-1Ja=idF5&nBMsSSI3d=1tYwMTpC07|1f^G*"
    "rKP@(b9@6ENN0@j;zgCP{D%>EeEPj8TpWT;h!#(Q}<R}*6MqJfE(^^E}YRReNyo}!c!Tf5#sN&ubA>>MMyWZg<ObDn=z"
    "tHso!vq>BjLQrY*{HeF>rvHJiXpkmMp0ZD28knLdGfwQZtL+sE3j6+xRL`YyYJ+W2XoI17fZ#ad3|rL9{+TvLReK&BMR"
    "c#)gjuoYk$zkltnf85~;Uvo~F=xqEN+?icT9p{@o+`u}FH(Y6@VakdHo&VSIYxEa4Or2kZAZ5}W$2iX}_YOec==GNoqI"
    "OzxIkYQq@&gLW3Nd(3ii)tP<8X1rlAQ|69zEF+MC(Ey4&hu$sWEDkBAZZ6ZGBu(@klW?gTAQ?0c2D!ANxRAn$@xNaneW"
    "w=X;Z(V(0nZqFILZ#!Jkakk&RC1f8jm?IBIbwIlgUxu@T9&e$mqg182aWJ;@bNi;IV-)nufnhzQJGH1H1_p+mKh8`GCe"
    "kEA&)qL{&$oj73%{K-<;Y;^{$1<yE}CiRdi~^xRsp{jVu{=kDmZk<y3Fex&nhNu~HHy#bt05_B?FXV<JR<xa3h4k~7gZ"
    "OBufTrguz4*|6pFW}1g$WHpz2xC)@s?g6SU5F>7VD>cG?dwk;p^OhBGyq(k?W}ZIs*#`9@+DB2B#pwi%NeMe2}xfq?Nj"
    "fDDzHgmn`=^9H&2>G-@u^;=n$X;!?6|q4uKfVd&z83Bhgf}HPqBf0coxd)7K|_W#zw1wySQFrw<3-0J7;=x(%x(%<T`b"
    "xeD{XI>X6OzNpq2GPo)Z_{eX@=b*<3pkSBq21)&H6?abqF*fm96o+6$lrR|U>&Z%hFkaDVb6ddRsr`_UU@}DR#ZOHAmj"
    "O_ZFd~|P5PMzUl|=dMbF!0b44SjgXp7^tL{{ob6bh5SmXe7-7y8Xb&Fw}t;uGH7q3!{OjT0`1JSN-2S1v0p3e9B}fTIT"
    "RbI`bBO7L>@30CJKTopHhZjQd~0C_Aa&Oxv&b9hqN!bo9Nf6uYHJT7X7mYpU`Io_Jr$r=pzVOyh2jI1hwR>vP2$8J&#F"
    "9y=p-lR`*t(JnB|7inz*#urCnzu~A+^N^@$~oV8mlR0$B*+akC;1~el@aldi%{>hdGQnFbB7&E=?d`MGVDL?u|8&kuPc"
    "5p!rwLUp3S!}iXw_kQr;$9ew;FgUeLvs{7nAHhl=6&1@!+L$w^0YSK6v5vO-JMn^fe$lcZz*mzt=5h0ISX%%A1>cOJAV"
    "u(V1Tt|-S7%(wS&*Sj_d3<Hzk2eLP4O)2KEI*kyzEDUjn^L3EJVcD~B->WIO=s`EtX(r{`;@@aHvGLqDa-SH=_It#78o"
    "alLYDDhIot4q}4tUG|mVwrsGyIo$L5#i%2^Vz%F+aHej4AQ~)QY=x4M~Al9Jko+30vkB#*10-v0aROSNr2(l5|AD=Equ"
    "-tY>OqxnT^{qaujzu}Ln;5<sfq8^>-MM`S4srC!G{<I5bt4Kx)Wr{uE(ICn#;YXJh3G_^}QNYJkoqE{~JYHr!pQ=pK|W"
    "@e6fAn|f|RX2}ZqS=Am9b6jgbsonW(*EiBuz9O&uvO&>eyRN1>TBbqwEf#)Q=}j0<D3rN18Y{RRh7=yo$EtXo=mn+y@5"
    "C%oA2P=<p*WN?lkA6x~131KXFni%3u;+57^?4M^DN6(czaEoaC1dC<bXf7^%KE%ZI`AoZY!I5`J3#a{0!2Ze#0_v2HCN"
    "@@mqaw@RrSGV-Amzk79NM?HPCZywQ`b_=RFo4;~Xf5132Ap;s=Hz4k`!>sK;P7_{+Nd8l<WoIAs$Gk3>lcJ--7QA$ukD"
    "A!_n@)o510YT+=Eb~+L}Tw`_I_e@F8ee?hgO&yeSqn=5P-kSa-r(P>4VqGyO<1b#s<`4Fapj_umDw%iq+KCT4HWIgT@J"
    "{wM<ESbh<f-OER;Bh)Uk1AXB0zLyYm|&48fJqenw&%b6#a&?6s)|Cq(!yad{X*)M7%ufc#?!8~HFii^}M2LMJURS8@rw"
    "e&J~K(B(mH+ot~61+$syl(GN^<Vo4BH-qV5{7H6B}wufIy7-crBNKvQz>@xE5>_@aCdv9Y{z&pzjR`mt-6UZnET}YL&-"
    "vqnEAMmp8&<jH)71e=L^K1kTJ}pJJxiH&L~EJBmrq5bsla4u5PNOAS>l>w_{NV1>nC>=^-7C7U610HrCZEt<#B$Pwz5~"
    "?F3%yq<X|-d)Jv70cX*|T*~p~@-7UioMprWr*-bM8ZgJ09$_3=+1<UL4>!K=AG#z{vtI_dZA(NLSTpG<l<JPW-EeH|*c"
    "#2=XA~Nh?C32qg6<r&)Aod4E>2IZ*x(r){_rRnk`tr=IZD`15^q(GFp4tuKNe>*)uANo=&vCNC07{da5s8zENoNqaRAp"
    "*(KPjy0v32lk={E#;*&!#IFc2Ao4FJ=*t~aQs#SJotT3Z7h_CO(9Q<%68TFqJB4tD&eG=b9Sx_NWvprqyMoV)x#278<w"
    "6qn6KW^$Omw8MV)#z?vo3?erVR~~!a~LRUklgQQz0k>QQU?qx{}4kFmJ=S?WMWh(I7yND5YaUrbR1LMXzh=2i}wTaxCG"
    "|<?L+S$PoMt+`3$lmiNCf(K5-`E=hmG8n^PPO9F!w8-Kcu)O)ug-zeUv#HW=Emw^j7~<@<oMqr!tu2at(SSOgyqK@`Ct"
    "?=le(mAKBcA-EedK-T|Xcm__Zu=4YkHALxz#QOq!zs#*{U01}bNQ?gT2iQq}@JE3)LD9|)lylR`zrI)b58y#ZW3`*WM`"
    "9fvH$sP1ED$l&=crnEF_M_U!(lG!n=-NN>I%_2L(H$|v+T-oc7?METxxGDO^TA2%DCi61%xIT;$CV0kpTr`8xRt`IAXh"
    "u3v!$(cG>DF5Z%}z&MeicS+}={RRmLUjCQZ4n|w;YnoG@^w1e<(7?U&sFxMr-s+b1uO1dpR+SrJL+|pEXA)2vb@a;5eZ"
    "*&-<&rT}%+N)eW6I{wo=)_V1pfL=Wd3<Z3r+-OEJVWLojd+{g$aB#dE%JuVb1mJ9y1{K7zwEu}amz@e%neB`!=-!Qy_B"
    "QmL;Wjg-ukiA$yUXb7Fgx1xW*^otS?`NyL(v9i^=MhmITIM(3BDanz$nwuMD3dd9*@DaB&xtD54!pL-w8*(;&4(SSVwN"
    "?aXIpYC_?Cy-%tKyRc;1vU2S2)#p+&J6}aF%>bGOWR*A{P*U2^Gmd`x&%e+@K?L(>iq8F>$X&H>!0FIiE8+B$`Ny{4pv"
    "G`}eD%-biYUdir?!CtvUHZmo1!26pZ~dMqWz_SAj(w%;fH#P1tg@ypY0xy{P!D^8XQsLC`YSU#<hfj<dQ)v@1j%JZr;-"
    "W;Yg1qYt7qA)71bZi3Bb}SP9qF%I>8K1QX!_$WCu&L9k>E(O+y9hA#&cLW^YzI{wPmC9zH_q*`q@oaXXChy;d+{mK>PC"
    "nK8iuJDl`bGgmXO~%F;(Ujy2Cb%?|cSxy%ld*W63iHsQ=9QH&y}-RF?n<oDhrdShc`XIrLki6bA6{8j+IFx}4g>D*a{-"
    "*%os!_&i<W@coy^bggXX~}GS9<)alN9dO*|Lob`z7R^AWLJ<9ieSOjkJLQEN2>a3r}f)8^&Sq|-<<jPKn-g0>A|8?t9u"
    "5%uVvi(2?<L|H5OmSs<tTX7^EeLW`^O&}RWbA;-_F^OEBzRj~eU{xCZ_epip^ov_*XbF^9V{V^~GLRVjpv26chTXqP4F"
    "y^|WlqUh$;0c281f6Cj85&pMp=Nf#q6vFrM9i!YdYzM*J(fRG{$>SE%+G@2{=gVEgVRHJn!tF$cTLd)Xwn<Dv4dP_*wQ"
    "P)!)NKl1q{F@vgLa>~ktm_W=OVJht)flcN5_SB}a6>TuI}$k#0=mu?_Bu#Jpz4R<+0JI0lp{G%8}q|S%vqTdUXE(1Qut"
    "XEXCefKlN6={zJ2jD}U^tzSo8Px*UN*K!a3%<cjUAsdOV7lL}^3AQg(tj<oh~eSi^CN`Z=-}Ptet4xI8&F`i6gzDg^v>"
    "HLRhOqvD?0AhjFW;Z>P{7r{*6C)C~ru1tC1Mm7tEoS9`hO~>->0zd!VI;3-?)hY-z0m;g?`KTtN<vm64{aRL5870O-U*"
    "TS+~yMr^Z>75G3K9B*B%VlDvOGU#fR`_o5&xLVeBJ`2!2?)rO|fZI=;X$g*pumdf>=0^eK3}SQ}(mX#yaAmyg7hB8qfu"
    "_F?)J_x6WF1X-TmciqYAD<Hza|b9%$LJXosz)19ElX))gkSkXK>^Du|VfGN!cE-)o8<0!Z(f$<F5B6RE8)}n1#?i#~nQ"
    "tzRK>UV`|i#VPg<x<6A>!Yr(N=rl339WT|2QvLLfCYJ+Ax2zc&UuWeD^+1ApGliiL+j^+dIi?y1s!dh_N_Wde8Ujm(dq"
    "v<XLrn;lezH>{{Yw%A!eb&rNo?wIg#lfx{2|lKw#=G4(y4)*MS<}SsZGJJ>Sd|Q>vP~qU?p^p>1YDQf|Ft^5ZViGp)6h"
    "t;x;Wd@aJCrw%n9jBoRBp#e2gMyiO_uNt+K6EjRpLN31M>*VOo`!f_mvF<k+o=@Q&gs^=^|ywp5F!Q8KMOwMZmRYY>&M"
    "x1X&p3QK&6b@HrI(S3t$zx<w~4p-uN{V}IH?~4+{=<jo}{h06h;ivy|38?Y=n_E7S{6T{4oDJr%?e}&_bl1^r1qXpzY$"
    "4GD;nNc@r%h}ru3-vZ4s&YuT4FrC9B2!~qTVnepI4p%y{4{=e);*H7~h<7gm_r9dPHfhhu>5VOpD|Dk_gPBS6UACqG`D"
    "zgZbl;tb87{wg?ry)Ae}T)9U;T7ViYWH<fBsGLhwX=}<~Z!@apf3fgc<s_}edB-RjR5IrzZO!KJex|G;J1Y?qas8`$mU"
    "V%lOuJllTPHIGSFR7(;pb*jLsq}44(G;SGD8V7w1@c&MlSOtL8JO2%sT=k+BruP){@Wz!)nnNk6p{>lyTy;o;C%$>W&^"
    "rvrd-=(81Yqmd8jY<18oJJ;Os0|Tf08pe$jv&mrL(2idtq8yJZk9MX%OmAx{}2t~qLAG&H)-(Umj8$ss;it*Y1p7<1p_"
    "?MGM^q<;*8qsg*h;k8U^&{|<{c=rUdeBqSNNx*e2{ZU>l{uh{)&jT+zk=N(iof~!Di9t0;*fq^~$KgXJO~?q9{4-1!Xg"
    "t^JKv0c*$B={!M*Rko?TfHpq$HZ2eQZhYdWY=ENpx-;P_B9!qxQa9xP;E^ItxViLu1k0RgexhK@SBt-7*-o1+#Wj(fgk"
    "Z>P%ibl8gpNmBfAx*VKNTNx<;CK>M~54o~e}gI!EZ;64M7Yg(NKBrG`VLX!%w`V^y-o(qAfq_mCoZ_@RpOU+)>dEg8u2"
    "@%W&Faj4L{J}e61<x9oLy}qik)xPew;-zl%!XEnj~n1IEwlme1qu@WKg`*~VR=?F900*1AxP~fVz;8JxV*DWB^pJtk11"
    "e!{bH7Q6FxCYYMz##N=&5|7dJ5$D9)PMIez-X?KM)Uik4RcUJ0pJK@nJ9NmP}~9R%@~e3&~i6`2<ONKJ{S<tZQ5!N_s9"
    "_}(^j@He=Q-rCL$Trd-qa{4<(5Y!_@Y^;vgwT=>Kgyv|>a=jn|iJDWZqvY#a;>6?qmayhYT^@Sq?gM=5OCT)H1_EwauM"
    "R<S)%+7zo8$JC>WYD1Kvx~^%06A<mFz{r@qnkV<$?A&$d&lwD*d~gFL{7t-F`5&^Uz|xZh3*@!}Etq4dg_?#|O^07DP9"
    "2bbMZ+xu~3&b7QwT=Y}YQE+w*2M?hT2Hg#j5?hSX}tABPY5ppot$m3_s@aemd4;K7)jJfCT9fq;kJ#V`a61B#Dz#4TKG"
    "zW~{I7?#!am}SA8hCR&c<KTOH*mHxl!`7L#w$&3vAvT1<RlbV@4OVK5D~d9=a#VQHFsVci!$CIty^S}OP01}A;a<T9W-"
    "02_S-x1s_kSoH8R5o5zci1X*X&O<ze#{ezzriz{Zw}ri|8Q)WohZXy5}Am->nfGP5Z2?Ul>>)Rq)i954|P07fDt4zPa|"
    ">A12DuC@|Epe<O0G=6mFl8mc=@1b)I9OA@Go7;9R^!9TJ9zyz#b;T(de^T%j$^gh_F-D$aDrYqyXg}DHxG5V(v*y&omz"
    "ZydS<pqg;guj!ZyF~(NI)#e^PgzH-XlYd6b(yrpM<U2&mmj+j9>lantkC1f>6!o%(PB*cuFO1`~_AZhTwb`Pg_^Hzn!t"
    "2OJ@el0ZV*)HPTX-T`I;|B}k*os4WhZV&PU3-da^lrEk0}d$d3>hM^2flQ=tu1>k9(L<hLx70rR44nHBy8_b|mnqXPA`"
    "m3qldJXQW>g6I08`c`pq?=8;3z!s~P<}+LKkitLH_?VxPg54*xUsAYW;@>X!&{>v6rD?xv0&xe5X;A*%C<nFl@#J3pM*"
    "sO@8?t8Q_O^Q-T4R{0`aRs4AK*O85Y?pWVq%Dwx@N9R-q^e5z)0}GG$!*EGYt<9ZFdCgI>gazjAn<$0D=s=$!)PgqGBH"
    "poRC0Az3SS?E%=xt(r4%VSp32X6kl=((^=3HpnQ%3nseT)4P%R&edWuBv3RTVe8@%5up7B88ImcP|z<K;n{)$uJq4!!X"
    "M*I1z0gh2I9ijJ<1TGj_0E_fE;tAbGTXvfv}j@Pp3O$`Agr&Qvp>+MD5Il`8|!sNc#d&DsyZQFAD)pf2k0;pV<^xT`!h"
    "&p;YpiBYX9`2mDa<uoAQBfKZyFu!rE_rBmkB2dheAR3qY|qk!l793!*c=rvGIt{`a^!4?)cpKl-IP8ecEoF`tQ=uTM{a"
    "hUva)iMucVOeh8muS~J7(81WZ6xKNwmY>3+^p^*E;IDha!nI8B4OUBrqEJxgMSj5*XQTvOQH{_E2yDh2feA%J;Z#s7Y&"
    "~Z8uG$QnxhTuyI6(BG+|75(K}N<I=LJ!q^N_-XKcC>NKPQ6O7^-exh`Npdj2zaW&s0f-Gpk{*d4Z^ZN<QAO+t-NZ60ba"
    "HcjuMt~BXXqf%skk}hZxnR^3KP`HJew0v&qmu@K46aXV1>J;g6Ampif=G@lP(kv)si02c4+N>_1l)m56>TgL0`L-RUoz"
    "hgJuJjStlS;pE4y=8C-P<Ue90joGK^rP+cIx~aEzh6A6LP~Ng>D;DU#rCewR$)x04Bd*F;M@3tsM(GdK}}DXgA*+=drd"
    "DAixqw%Zqkofi$ahWRM5kIS;&LF%`m$^}t<J9-#8^;qDwjo!`T<=S0Gt-G*(rZ92^Jcr3RGdi&>SWJH=QdOONFj2OJkj"
    "L|lTD4Qd?;|MS$N3Qp1F>@q_u+A+Mv9}T+Oi>&&7F&$&@E5OQiv3OycTT3C7Q<;Q0V5Lf-h7;IIE*JK6kEEHr~ynGg?a"
    "aNQG-uB|G@9^Dqg_ydM~|x$sgI$O}#ZySkS*z6qzGKemu%TswLOZ05-;(_{|KHCB?Z1J@qyhaa_WNKl^<^8En*UM<mm-"
    "+|K!=9S?BvF4KrM2%{IfV=7jz*FNr#Vp>pdXEPjf)VN}7`~>PH_9<Ey>8YURVq93ZjpR5)XN5&hT{(<XtqT23-&SD~zM"
    "KN?)jeAqxjw^7X7V*r61Z1pxP9FH=1_&I0{ePOxzEc@8t}i4^217_3qOIuT<^Fh^Y;G61}_D_I<EZo{aYuh19Fo{(nBB"
    "_DW&{k!ZsmlS4%fasUoqk-h(3$cXlm8_-mW{c9k$p_aCorzw{}3{`gtlPGX!Ex`_!zq(eclA2wUXHB?TiI#C1d;!zRw>"
    "|Zx3%r})bw|~T~OXj^=%5J3MD<~Is@lfSx31=)$1m08!;-pQ?RJC#(A$9%*QPvB?OXixf4Imo$QyEkQaEMtGz-3;DCVy"
    "OV@M2#kH7fYttfP=k2;_Q!+KIHlurEO8i)Zr}W>PT+`0;sJu}Q;jzbT6NgJN}ggxX+(w;vUPr3)&W7C92^9o(u)x=I-("
    "!Uni%$e3B-G4c#0xmsk()zN?"
)
